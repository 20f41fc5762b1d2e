/** Owns the question whether a topic is there. */
package org.apache.spark.sql.headgate.kafka

import java.util.Collections

import org.apache.kafka.clients.admin.{Admin, TopicDescription}
import org.apache.kafka.common.errors.{InvalidTopicException, UnknownTopicOrPartitionException}

private[kafka] object Topics {
  def describe(admin: Admin, topic: String): Option[TopicDescription] =
    try {
      val asked = admin.describeTopics(Collections.singleton(topic))
      Some(Admins.result(asked.topicNameValues.get(topic)))
    } catch { case _: UnknownTopicOrPartitionException | _: InvalidTopicException => None }
}
