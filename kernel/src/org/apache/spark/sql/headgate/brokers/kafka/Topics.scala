/** Owns what a cluster knows of a topic. */
package org.apache.spark.sql.headgate.brokers.kafka

import java.lang.{Short => JShort}
import java.util.{Collections, Optional}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.admin.{Admin, NewTopic, TopicDescription}
import org.apache.kafka.common.config.ConfigResource
import org.apache.kafka.common.errors._

private[headgate] object Topics {
  def describe(admin: Admin, topic: String): Option[TopicDescription] =
    try {
      val request = admin.describeTopics(Collections.singleton(topic))
      Some(Admins.result(request.topicNameValues.get(topic)))
    } catch { case _: UnknownTopicOrPartitionException | _: InvalidTopicException => None }

  /** Makes a topic of one partition that keeps everything, unless it is there; whether it was made. */
  def create(admin: Admin, topic: String, servers: String): Boolean = {
    val there = describe(admin, topic).isDefined
    if (!there) {
      val settings = Map("cleanup.policy" -> "delete", "retention.ms" -> "-1", "retention.bytes" -> "-1")
      val wanted = new NewTopic(topic, Optional.of[Integer](1), Optional.empty[JShort]())
        .configs(settings.asJava)
      try Admins.result(admin.createTopics(Collections.singleton(wanted)).all())
      catch {
        case _: TopicExistsException => // somebody else was faster
        case e: AuthorizationException =>
          throw new KafkaFailure(KafkaFailure.NotAuthorised, topic, servers,
            s"the topic '$topic' is not there and must not be created by this user: create it with " +
              "one partition and retention.ms=-1, or allow it to be created", e)
      }
      // The controller has it; the broker that answers learns of it a little later.
      val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Clients.PatienceMs)
      while (describe(admin, topic).isEmpty && System.nanoTime() < until) Thread.sleep(20)
    }
    !there
  }

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
