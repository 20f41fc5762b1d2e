/** Owns the consumers of this process that read parts of topics, from one batch to the next. */
package org.apache.spark.sql.headgate.sources.kafka

import java.time.Duration
import java.util.{Collections, Map => JMap}
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicLong

import scala.collection.{BufferedIterator, mutable}
import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.{ConsumerRecord, KafkaConsumer}
import org.apache.kafka.common.TopicPartition

import org.apache.spark.sql.headgate.brokers.core.Sweeper
import org.apache.spark.sql.headgate.spark.KafkaPart

/** A consumer of one partition, and the records that it got beyond what was asked for. */
private[kafka] final class TopicCursor(topic: TopicPartition, client: JMap[String, Object]) {
  private type Record = ConsumerRecord[Array[Byte], Array[Byte]]
  private[kafka] val key = (topic, client)
  private[kafka] var idleSince = 0L

  private val consumer = {
    val made = new KafkaConsumer[Array[Byte], Array[Byte]](client)
    made.assign(Collections.singletonList(topic))
    made
  }
  private var fetched: BufferedIterator[Record] = Iterator.empty[Record].buffered
  /** All records below have been given, or cannot be seen. */
  private var position = -1L
  /** Whether retention has not reached what was fetched. */
  private var allThere = false

  def isAt(offset: Long): Boolean = position == offset

  /** The first record from `at` on; null if there is none below `until`; or Left, if that is not sure. */
  def read(at: Long, until: Long): Either[Long, Record] = {
    if (position != at) moveTo(at)
    var answer: Either[Long, Record] = null
    val patient = System.nanoTime() + TopicCursor.PatienceNanos
    while (answer == null) {
      if (fetched.hasNext) answer = take(until)
      else if (position >= until) answer = Right(null)
      else if (!fetch(until) && System.nanoTime() > patient) answer = Left(position)
    }
    answer
  }

  def close(): Unit = consumer.close(Duration.ZERO)

  private def moveTo(at: Long): Unit = {
    fetched = Iterator.empty[Record].buffered
    KafkaPart.uninterrupted(consumer.seek(topic, at))
    position = at
  }

  private def take(until: Long): Either[Long, Record] = {
    val record = fetched.head
    if (record.offset > position && !isThere) Left(position)
    else if (record.offset >= until) { position = until; Right(null) }
    else { fetched.next(); position = record.offset + 1; Right(record) }
  }

  /** Whether records that are missing here were never to be seen, as those of a transaction that was
    * rolled back: all that was fetched lies where the topic still has its records.
    */
  private def isThere: Boolean = {
    if (!allThere) {
      val first = KafkaPart.uninterrupted(consumer.beginningOffsets(Collections.singletonList(topic)))
      allThere = first.get(topic).longValue <= position
    }
    allThere
  }

  /** Gets more; whether there was anything. */
  private def fetch(until: Long): Boolean = {
    val got = KafkaPart.uninterrupted(consumer.poll(TopicCursor.PollTime)).records(topic)
    if (!got.isEmpty) {
      fetched = got.asScala.iterator.buffered
      allThere = false
      true
    } else {
      val now = consumer.position(topic)
      val moved = now > position
      if (moved) position = math.min(now, until)
      moved
    }
  }
}

private object TopicCursor {
  private val PollTime = Duration.ofMillis(500)
  /** Then Spark's reader asks, which can say why nothing comes. */
  private val PatienceNanos = TimeUnit.SECONDS.toNanos(3)
}

/** A task has a cursor for itself, and gives it back when it is done with it. */
private[headgate] object TopicCursors {
  private type Key = (TopicPartition, JMap[String, Object])
  private lazy val sweeping = Sweeper.eachMinute(closeIdle)
  private val idle = mutable.HashMap.empty[Key, List[TopicCursor]]
  /** How many were made, because none was idle. */
  val made = new AtomicLong

  private[kafka] def take(part: KafkaPart): TopicCursor = {
    val key = (part.topic, part.client)
    val found = synchronized {
      val waiting = idle.getOrElse(key, Nil)
      val chosen = waiting.find(_.isAt(part.from)).orElse(waiting.headOption)
      chosen.foreach(one => keep(key, waiting.filterNot(_ eq one)))
      chosen
    }
    found.getOrElse { made.incrementAndGet(); new TopicCursor(part.topic, part.client) }
  }

  private[kafka] def putBack(cursor: TopicCursor): Unit = {
    sweeping
    cursor.idleSince = System.nanoTime()
    synchronized(idle(cursor.key) = cursor :: idle.getOrElse(cursor.key, Nil))
  }

  private[kafka] def discard(cursor: TopicCursor): Unit = Sweeper.later(cursor.close())

  private def closeIdle(before: Long): Unit = {
    val old = synchronized {
      val found = idle.values.flatten.filter(_.idleSince - before < 0).toSeq
      found.map(_.key).distinct.foreach(key => keep(key, idle(key).filterNot(found.contains)))
      found
    }
    old.foreach(discard)
  }

  private def keep(key: Key, cursors: List[TopicCursor]): Unit =
    if (cursors.isEmpty) idle.remove(key) else idle(key) = cursors
}
