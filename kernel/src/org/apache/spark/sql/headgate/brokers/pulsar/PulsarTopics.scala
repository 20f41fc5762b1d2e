/** Owns what a Pulsar service knows of its topics. */
package org.apache.spark.sql.headgate.brokers.pulsar

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.JsonNodeFactory
import org.apache.pulsar.client.api.PulsarClient

object PulsarTopics {
  private val mapper = new ObjectMapper()

  /** JSON, by topic: partitions (0: it has none), or error and message. Creates no topic.
    *
    * @param accessJson `url` and the options of an access
    */
  def topics(accessJson: String, topics: JList[String]): String = {
    val options = mapper.readTree(accessJson).properties.asScala
      .map(e => e.getKey -> e.getValue.asText).toMap
    val access = PulsarAccess(options("url"), options - "url")
    val json = JsonNodeFactory.instance.objectNode()
    topics.asScala.distinct.foreach { topic =>
      val entry = json.putObject(topic)
      try Clients.use(access) { client => entry.put("partitions", partitions(client, topic)) }
      catch { case f: PulsarFailure => entry.put("error", f.kind).put("message", f.text) }
    }
    json.toString
  }

  /** How many partitions a topic has; 0 if it is not partitioned. */
  def partitions(client: PulsarClient, topic: String): Int = {
    val found = Clients.result(client.getPartitionsForTopic(topic, false)).asScala
    if (found.size == 1 && !found.head.matches(".*-partition-\\d+")) 0 else found.size
  }

  /** The topic of one partition; a topic without partitions is its own. */
  def partition(topic: String, partitions: Int, number: Int): String =
    if (partitions == 0) topic else s"$topic-partition-$number"
}
