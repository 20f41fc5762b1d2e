/** Owns what Python asks a Pulsar service. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import org.apache.spark.sql.headgate.brokers.pulsar.PulsarTopics

object PulsarApi {

  /** JSON, by topic: partitions (0: it has none), or error and message. Creates no topic.
    *
    * @param accessJson `url` and the options of an access
    */
  def topics(accessJson: String, topics: JList[String]): String = PulsarTopics.topics(accessJson, topics)
}
