/** Owns what Python asks a Kafka cluster. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.sql.headgate.brokers.kafka.KafkaAdmin
import org.apache.spark.sql.headgate.sources.kafka.{TopicGuard, TopicIds}

object KafkaApi {

  /** JSON, by topic: partitions, earliest, latest, config and operations; or error and message. */
  def topics(clientJson: String, topics: JList[String]): String = KafkaAdmin.topics(clientJson, topics)

  /** JSON: the transactions of any sink group of a job that are open at this moment. */
  def openTransactions(clientJson: String, job: String): String =
    KafkaAdmin.openTransactions(clientJson, job)

  /** Makes a topic of one partition that keeps everything, unless it is there; whether it was made. */
  def createLasting(clientJson: String, topic: String): Boolean =
    KafkaAdmin.createLasting(clientJson, topic)

  def clusterId(clientJson: String): String = KafkaAdmin.clusterId(clientJson)

  /** JSON: cluster and topics, id by name; or error and message.
    *
    * @param topic a name, several with commas, or a pattern
    */
  def topicIds(clientJson: String, topic: String, isPattern: Boolean): String =
    TopicIds.json(clientJson, topic, isPattern)

  /** See [[TopicGuard.put]]. */
  def guardTopics(session: ApiSession, sparkFolder: String, file: String, sources: String,
      known: String): Unit = TopicGuard.put(session, sparkFolder, file, sources, known)
}
