/** Owns the ids of topics: a name may belong to another topic tomorrow, an id never does. */
package org.apache.spark.sql.headgate.sources.kafka

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}
import org.apache.kafka.clients.admin.{Admin, ListTopicsOptions}
import org.apache.kafka.common.Uuid
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException

import org.apache.spark.sql.headgate.brokers.kafka.{Admins, KafkaFailure}

/** @param cluster null if the brokers do not tell
  * @param topics  id by name; topics that are not there, or whose brokers know no ids, are left out
  */
private[headgate] case class TopicIds(cluster: String, topics: Map[String, String]) {
  def toJson: ObjectNode = {
    val json = JsonNodeFactory.instance.objectNode().put("cluster", cluster)
    val names = json.putObject("topics")
    topics.toSeq.sorted.foreach { case (name, id) => names.put(name, id) }
    json
  }
}

object TopicIds {
  private val mapper = new ObjectMapper()

  /** JSON for Python: cluster and topics, or error and message.
    *
    * @param topic a name, several with commas, or a pattern
    */
  def json(clientJson: String, topic: String, isPattern: Boolean): String =
    try Admins.use(clientOf(clientJson))(of(_, Seq(TopicChoice(topic, isPattern))).toJson.toString)
    catch {
      case failure: KafkaFailure => JsonNodeFactory.instance.objectNode()
        .put("error", failure.kind).put("message", failure.text).toString
    }

  private[headgate] def clientOf(json: String): Map[String, String] =
    mapper.readTree(json).properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap

  /** The ids of all topics that any of the choices has; the requests are under way together. */
  private[headgate] def of(admin: Admin, choices: Seq[TopicChoice]): TopicIds = {
    val cluster = admin.describeCluster().clusterId()
    val names = choices.flatMap(_.names).distinct
    val described = admin.describeTopics(names.asJava).topicNameValues
    val listed = if (choices.forall(!_.isPattern)) None
      else Some(admin.listTopics(new ListTopicsOptions().listInternal(false)).listings())
    val found = names.flatMap { name =>
      try Some(name -> Admins.result(described.get(name)).topicId)
      catch { case _: UnknownTopicOrPartitionException => None }
    }
    val matched = listed.toSeq.flatMap(Admins.result(_).asScala)
      .filter(t => choices.exists(_.matches(t.name))).map(t => t.name -> t.topicId)
    TopicIds(Admins.result(cluster), (found ++ matched).toMap.collect {
      case (name, id) if id != null && id != Uuid.ZERO_UUID => name -> id.toString
    })
  }
}

/** The topics of a source, as its user wrote them. */
private[headgate] case class TopicChoice(topic: String, isPattern: Boolean) {
  val names: Seq[String] = if (isPattern) Nil else topic.split(",").map(_.trim).filter(_.nonEmpty).toSeq
  private lazy val pattern = java.util.regex.Pattern.compile(topic)
  def matches(name: String): Boolean = isPattern && pattern.matcher(name).matches
  def has(name: String): Boolean = matches(name) || names.contains(name)
}
