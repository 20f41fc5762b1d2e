/** Owns what a cluster knows of a topic. */
package org.apache.spark.sql.headgate.brokers.kafka

import java.util.Collections

import org.apache.kafka.clients.admin.{Admin, TopicDescription}
import org.apache.kafka.common.config.ConfigResource
import org.apache.kafka.common.errors._

private[headgate] object Topics {
  def describe(admin: Admin, topic: String): Option[TopicDescription] =
    try {
      val request = admin.describeTopics(Collections.singleton(topic))
      Some(Admins.result(request.topicNameValues.get(topic)))
    } catch { case _: UnknownTopicOrPartitionException | _: InvalidTopicException => None }

  /** How large a batch of records the topic takes, if this user may know. */
  def maxMessageBytes(admin: Admin, topic: String): Option[Int] = {
    val resource = new ConfigResource(ConfigResource.Type.TOPIC, topic)
    try {
      val config = Admins.result(
        admin.describeConfigs(Collections.singleton(resource)).values.get(resource))
      Option(config.get("max.message.bytes")).flatMap(c => Option(c.value)).flatMap(_.toIntOption)
    } catch { case _: AuthorizationException => None }
  }
}
