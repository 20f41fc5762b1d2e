/** Owns reading which batches of a group's tasks are out. */
package org.apache.spark.sql.headgate.kafka

import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.Collections
import java.util.concurrent.TimeUnit

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.kafka.clients.admin._
import org.apache.kafka.common.{IsolationLevel, TopicPartition}
import org.apache.kafka.common.errors.{GroupIdNotFoundException, TimeoutException}
import org.apache.kafka.common.utils.Utils

/** A batch's number is in two places, written in the transaction of its rows: as the offset of a
  * consumer group, which can be asked for at any time but expires, and as a record of a compacted
  * topic, which stays but has to be read through. The newer of the two counts.
  */
private[kafka] object Markers {
  private val mapper = new ObjectMapper()
  private val PollMs = 20L

  /** A job's markers are all in one partition, which its tasks' groups have their offsets for. */
  def partitionOf(job: String, partitions: Int): Int =
    Utils.toPositive(Utils.murmur2(job.getBytes(UTF_8))) % partitions

  def record(batch: Long, rows: Long): Array[Byte] =
    s"""{"version":1,"batch":$batch,"rows":$rows}""".getBytes(UTF_8)

  /** The marker of one task by its group's offset, or -1. */
  def ofTask(admin: Admin, group: KafkaGroup, partition: Int, task: Int): Long =
    ofGroups(admin, Seq(group.consumerGroup(task)), new TopicPartition(group.markerTopic, partition))
      .values.headOption.getOrElse(-1L)

  /** By consumer group, its offset; those without one are left out.
    *
    * The admin client leaves a partition out of its answer if a transaction has just been
    * committed there (ListConsumerGroupOffsetsHandler skips UNSTABLE_OFFSET_COMMIT), which looks as
    * if there were no offset: only a null says so.
    */
  def ofGroups(admin: Admin, groups: Seq[String], at: TopicPartition): Map[String, Long] = {
    val found = mutable.HashMap.empty[String, Long]
    var open = groups.toSet
    val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Clients.PatienceMs)
    while (open.nonEmpty) {
      val spec = new ListConsumerGroupOffsetsSpec().topicPartitions(Collections.singletonList(at))
      val asked = admin.listConsumerGroupOffsets(
        open.map(_ -> spec).toMap.asJava, new ListConsumerGroupOffsetsOptions().requireStable(true))
      val unstable = open.filter { name =>
        val offsets =
          try Admins.result(asked.partitionsToOffsetAndMetadata(name))
          catch { case _: GroupIdNotFoundException => Collections.singletonMap(at, null) }
        Option(offsets.get(at)).foreach(o => found(name) = o.offset)
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
  def scan(admin: Admin, group: KafkaGroup, partition: Int): Map[Int, Long] = {
    val at = new TopicPartition(group.markerTopic, partition)
    val end = Admins.result(admin.listOffsets(Map(at -> OffsetSpec.latest()).asJava,
      new ListOffsetsOptions(IsolationLevel.READ_UNCOMMITTED)).partitionResult(at)).offset
    val found = mutable.HashMap.empty[Int, Long]
    val consumer = Clients.consumer(group.client)
    try {
      consumer.assign(Collections.singletonList(at))
      consumer.seekToBeginning(Collections.singletonList(at))
      var position = consumer.position(at)
      var until = System.nanoTime() + StuckNanos
      while (position < end && System.nanoTime() < until) {
        consumer.poll(Duration.ofMillis(200)).forEach { record =>
          if (record.key != null && record.value != null) {
            KafkaGroup.taskOf(new String(record.key, UTF_8), group.markerKeyPrefix).foreach { task =>
              val batch = mapper.readTree(record.value).path("batch").asLong(-1L)
              found(task) = math.max(found.getOrElse(task, -1L), batch)
            }
          }
        }
        val now = consumer.position(at)
        if (now > position) until = System.nanoTime() + StuckNanos
        position = now
      }
    } finally consumer.close(Duration.ZERO)
    found.toMap
  }

  private val StuckNanos = TimeUnit.SECONDS.toNanos(3)
}
