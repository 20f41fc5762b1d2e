/** Owns what the driver does with a group once, when a query starts. */
package org.apache.spark.sql.headgate.sinks.kafka

import java.lang.{Short => JShort}
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.{Optional, Set => JSet}
import java.util.concurrent.{ExecutionException, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.admin.{Admin, NewTopic, TopicDescription}
import org.apache.kafka.clients.consumer.OffsetAndMetadata
import org.apache.kafka.clients.producer.ProducerRecord
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors._

import org.apache.spark.sql.headgate.brokers.kafka.{Admins, Clients, KafkaFailure, ProducerKey, Topics}
import org.apache.spark.sql.headgate.commit.{Marker, Owner}

/** 1. Every topic of the group must be there.
  * 2. The marker topic is made if it is missing.
  * 3. A topic that another home's job of the same name writes is left alone: the start fails. The
  *    others are the job's from now on.
  * 4. Whatever still writes under the job's transactional ids is fenced: transactions that a killed
  *    driver left open end, and its tasks that live on can commit nothing more.
  * 5. The marker topic is read.
  */
private[headgate] final class GroupStart(group: KafkaGroup, admin: Admin) {

  /** @param tasks of the write: their ids are fenced where the broker does not list those in use */
  def plan(start: String, tasks: Int): GroupPlan = {
    val topics = group.sinks.values.toSeq.distinct.sorted
    topics.foreach { topic =>
      if (Topics.describe(admin, topic).isEmpty) throw KafkaFailure.missing(topic, group.servers)
    }
    val plan = GroupPlan(group, start, batchBytes(topics))
    if (!group.exactlyOnce) plan
    else {
      val partition = Markers.partitionOf(group.job, ensureMarkerTopic().partitions.size)
      own(partition)
      fence(tasks)
      plan.copy(
        markerPartition = partition, markers = Markers.scan(admin, group, partition))
    }
  }

  /** By topic, which home's job writes there under this job's name. */
  def owners(): Map[String, Owner] = whereMarked(Map.empty[String, Owner]) {
    Markers.owners(admin, group, _)
  }

  /** Makes the group's topics this job's, whosever they were. */
  def takeOver(): Unit = if (group.exactlyOnce) {
    val partition = Markers.partitionOf(group.job, ensureMarkerTopic().partitions.size)
    write(partition, group.sinks.values.toSeq.distinct.sorted)
  }

  private def own(partition: Int): Unit = if (group.owner.id.nonEmpty) {
    val topics = group.sinks.values.toSeq.distinct.sorted
    val found = Markers.owners(admin, group, partition)
    topics.find(t => group.owner.isOther(found.get(t))).foreach { t =>
      throw group.taken(t, found(t))
    }
    write(partition, topics.filterNot(found.contains))
  }

  /** For those who start, and first for those who run: their tasks look when they make a producer. */
  private def write(partition: Int, topics: Seq[String]): Unit = {
    val at = new TopicPartition(group.markerTopic, partition)
    val noted = Map(at -> new OffsetAndMetadata(0L, group.owner.toJson)).asJava
    group.ownerGroups.keys.map(admin.alterConsumerGroupOffsets(_, noted)).toSeq
      .foreach(change => Admins.result(change.all()))
    if (topics.nonEmpty) record(partition, topics)
  }

  private def record(partition: Int, topics: Seq[String]): Unit = {
    val producer = Clients.producer(ProducerKey(group.client, null, 0, GroupStart.BatchBytes))
    try {
      val sent = topics.map { t =>
        producer.send(new ProducerRecord(group.markerTopic, partition,
          (group.ownerKeyPrefix + t).getBytes(UTF_8), group.owner.toJson.getBytes(UTF_8)))
      }
      sent.foreach { done =>
        try done.get(Clients.PatienceMs, TimeUnit.MILLISECONDS)
        catch { case e: ExecutionException => throw e.getCause }
      }
    } finally producer.close(Duration.ZERO)
  }

  private def whereMarked[T](none: T)(body: Int => T): T =
    if (!group.exactlyOnce) none
    else Topics.describe(admin, group.markerTopic).fold(none) { topic =>
      body(Markers.partitionOf(group.job, topic.partitions.size))
    }

  /** By task, the last batch of this run that is out.
    *
    * A driver that was killed may have left transactions open, which hide markers from us. Who asks
    * holds the job's lease, so they are nobody's: they are fenced here as at a start.
    */
  def markers(): Map[Int, Marker] = whereMarked(Map.empty[Int, Marker]) { partition =>
    fence(0)
    val at = new TopicPartition(group.markerTopic, partition)
    val scanned = Markers.scan(admin, group, partition)
    val listed = Admins.result(admin.listConsumerGroups().valid()).asScala.map(_.groupId)
      .filter(KafkaGroup.taskOf(_, group.consumerGroupPrefix).isDefined)
    val groups = (listed ++ scanned.keys.map(group.consumerGroup)).toSeq.distinct
    Markers.ofGroups(admin, groups, at).foldLeft(scanned) { case (found, (name, marker)) =>
      val task = KafkaGroup.taskOf(name, group.consumerGroupPrefix).get
      found.updated(task, found.get(task).fold(marker)(_.newer(marker)))
    }
  }

  /** No more than the topics take: a batch that is too large for its topic is cut by the producer to
    * the size of its batches, which would be the same again, until it gives up.
    */
  private def batchBytes(topics: Seq[String]): Int =
    (GroupStart.BatchBytes +: topics.flatMap(Topics.maxMessageBytes(admin, _))).min

  private def ensureMarkerTopic(): TopicDescription = Topics.describe(admin, group.markerTopic).getOrElse {
    val topic = new NewTopic(group.markerTopic, Optional.of[Integer](4), Optional.empty[JShort]())
      .configs(GroupStart.MarkerTopicSettings.asJava)
    try Admins.result(admin.createTopics(JSet.of(topic)).all())
    catch {
      case _: TopicExistsException => // another job was faster
      case e: AuthorizationException =>
        throw new KafkaFailure(KafkaFailure.NotAuthorised, group.markerTopic, group.servers,
          s"the marker topic '${group.markerTopic}' is not there and must not be created by this " +
            "user: create it with cleanup.policy=compact, or allow it to be created", e)
    }
    // The controller has it; the broker that answers learns of it a little later.
    val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Clients.PatienceMs)
    Iterator.continually { Thread.sleep(20); Topics.describe(admin, group.markerTopic) }
      .find(_.isDefined || System.nanoTime() >= until).flatten
      .getOrElse(throw KafkaFailure.missing(group.markerTopic, group.servers))
  }

  private def fence(tasks: Int): Unit = {
    val prefix = group.transactionalIdPrefix
    val ids =
      try {
        Admins.result(admin.listTransactions().all()).asScala.map(_.transactionalId)
          .filter(KafkaGroup.taskOf(_, prefix).isDefined).toSeq
      } catch {
        case _: AuthorizationException | _: UnsupportedVersionException =>
          (0 until tasks).map(group.transactionalId)
      }
    if (ids.nonEmpty) Admins.result(admin.fenceProducers(ids.asJava).all())
  }
}

private[headgate] object GroupStart {
  private val BatchBytes = 256 << 10

  /** Small segments, often cleaned: the topic is read through at every start. */
  private val MarkerTopicSettings = Map(
    "cleanup.policy" -> "compact",
    "segment.bytes" -> (16 << 20).toString,
    "segment.ms" -> TimeUnit.HOURS.toMillis(1).toString,
    "min.cleanable.dirty.ratio" -> "0.1")
}
