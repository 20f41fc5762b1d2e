/** Owns reading which batches of a group's tasks are out. */
package org.apache.spark.sql.headgate.sinks.kafka

import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.Collections
import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.JsonNodeFactory
import org.apache.kafka.clients.admin._
import org.apache.kafka.clients.consumer.OffsetAndMetadata
import org.apache.kafka.common.{IsolationLevel, TopicPartition}
import org.apache.kafka.common.errors.{GroupIdNotFoundException, TimeoutException}
import org.apache.kafka.common.utils.Utils

import org.apache.spark.sql.headgate.brokers.kafka.{Admins, Clients}
import org.apache.spark.sql.headgate.commit.{Marker, Owner}

/** A batch's number is in two places, written in the transaction of its rows: as the offset of a
  * consumer group, which can be read at any time but expires, and as a record of a compacted
  * topic, which stays but has to be read through. The newer of the two counts. Both say what batch
  * it was beyond its number ([[Marker]]).
  */
private[headgate] object Markers {
  private val PollMs = 20L

  /** Each task writes one: a topic of very many partitions would be repeated too often. */
  private val PositionBytes = 16 << 10

  /** A job's markers are all in one partition, which its tasks' groups have their offsets for. */
  def partitionOf(job: String, partitions: Int): Int =
    Utils.toPositive(Utils.murmur2(job.getBytes(UTF_8))) % partitions

  def record(mark: Marker, rows: Long): Array[Byte] = {
    val json = JsonNodeFactory.instance.objectNode().put("version", 1)
    mark.writeTo(json, PositionBytes).put("rows", rows).toString.getBytes(UTF_8)
  }

  /** What goes with a group's offset, which is the batch. */
  def offset(mark: Marker): OffsetAndMetadata = new OffsetAndMetadata(mark.batch, mark.toShortJson)

  /** The marker of one task by its group's offset; throws if a topic has got another owner. */
  def ofTask(admin: Admin, group: KafkaGroup, partition: Int, task: Int): Option[Marker] = {
    val own = group.consumerGroup(task)
    val found = ofGroups(admin, own +: group.ownerGroups.keys.toSeq,
      new TopicPartition(group.markerTopic, partition))
    for ((name, topic) <- group.ownerGroups; marker <- found.get(name)) {
      val owner = Owner(marker.owner, "another home")
      if (group.owner.isOther(Some(owner))) throw group.taken(topic, owner)
    }
    found.get(own)
  }

  /** By consumer group, its marker; those without one are left out.
    *
    * The admin client leaves a partition out of its answer if a transaction has just been
    * committed there (ListConsumerGroupOffsetsHandler skips UNSTABLE_OFFSET_COMMIT), which looks as
    * if there were no offset: only a null says so.
    */
  def ofGroups(admin: Admin, groups: Seq[String], at: TopicPartition): Map[String, Marker] = {
    val found = mutable.HashMap.empty[String, Marker]
    var open = groups.toSet
    val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Clients.PatienceMs)
    while (open.nonEmpty) {
      val spec = new ListConsumerGroupOffsetsSpec().topicPartitions(Collections.singletonList(at))
      val request = admin.listConsumerGroupOffsets(
        open.map(_ -> spec).toMap.asJava, new ListConsumerGroupOffsetsOptions().requireStable(true))
      val unstable = open.filter { name =>
        val offsets =
          try Admins.result(request.partitionsToOffsetAndMetadata(name))
          catch { case _: GroupIdNotFoundException => Collections.singletonMap(at, null) }
        Option(offsets.get(at)).foreach(o => found(name) = Marker.of(o.offset, o.metadata))
        !offsets.containsKey(at)
      }
      open = unstable
      if (open.nonEmpty) {
        if (System.nanoTime() >= until) {
          throw new TimeoutException(s"the offset of the group ${open.head} is held by a transaction")
        }
        Thread.sleep(PollMs)
      }
    }
    found.toMap
  }

  /** By task, the last batch of this run in the marker topic.
    *
    * An open transaction of another job may hide the newest markers for as long as it lasts. They
    * are then missing here, but are young: the offsets of the groups cannot have expired yet.
    */
  def scan(admin: Admin, group: KafkaGroup, partition: Int): Map[Int, Marker] = {
    val found = mutable.HashMap.empty[Int, Marker]
    read(admin, group, partition, committed = true) { (key, value) =>
      KafkaGroup.taskOf(key, group.markerKeyPrefix).foreach { task =>
        found(task) = Marker.parse(value).newer(found.getOrElse(task, Marker(-1L)))
      }
    }
    found.toMap
  }

  /** By topic, who writes there under the job's name.
    *
    * Not only what is committed: a transaction that somebody has open would hide it.
    */
  def owners(admin: Admin, group: KafkaGroup, partition: Int): Map[String, Owner] = {
    val found = mutable.HashMap.empty[String, Owner]
    read(admin, group, partition, committed = false) { (key, value) =>
      if (key.startsWith(group.ownerKeyPrefix)) {
        found(key.substring(group.ownerKeyPrefix.length)) = Owner.parse(value)
      }
    }
    found.filter { case (topic, _) => group.sinks.values.exists(_ == topic) }.toMap
  }

  private def read(admin: Admin, group: KafkaGroup, partition: Int, committed: Boolean)(
      take: (String, Array[Byte]) => Unit): Unit = {
    val at = new TopicPartition(group.markerTopic, partition)
    val end = Admins.result(admin.listOffsets(Map(at -> OffsetSpec.latest()).asJava,
      new ListOffsetsOptions(IsolationLevel.READ_UNCOMMITTED)).partitionResult(at)).offset
    val consumer = Clients.consumer(group.client, committed)
    try {
      consumer.assign(Collections.singletonList(at))
      consumer.seekToBeginning(Collections.singletonList(at))
      var position = consumer.position(at)
      var until = System.nanoTime() + StuckNanos
      while (position < end && System.nanoTime() < until) {
        consumer.poll(Duration.ofMillis(200)).forEach { record =>
          if (record.key != null && record.value != null) {
            take(new String(record.key, UTF_8), record.value)
          }
        }
        val now = consumer.position(at)
        if (now > position) until = System.nanoTime() + StuckNanos
        position = now
      }
    } finally consumer.close(Duration.ZERO)
  }

  private val StuckNanos = TimeUnit.SECONDS.toNanos(3)
}
