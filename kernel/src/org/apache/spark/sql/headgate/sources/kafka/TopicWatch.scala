/** Owns the consumer that tells a query that waits when its topics have records. */
package org.apache.spark.sql.headgate.sources.kafka

import java.time.Duration
import java.util.{HashMap => JHashMap, Map => JMap}
import java.util.concurrent.TimeUnit

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.kafka.clients.consumer.{ConsumerConfig, KafkaConsumer}
import org.apache.kafka.common.TopicPartition
import org.apache.kafka.common.errors.WakeupException

import org.apache.spark.sql.connector.read.streaming.Offset
import org.apache.spark.sql.headgate.brokers.core.Sweeper

/**
 * It stands where the last look found the ends of all partitions, and has a fetch waiting at each broker,
 * which answers as soon as there is a record. So a look is no request: it sees whether an answer has come.
 * A broker gets one fetch in some seconds while nothing comes. The record that it sends is thrown away.
 *
 * Where topics really end, whether there are new partitions, and what is wrong, is asked by Spark's look.
 */
private[kafka] final class TopicWatch(client: JMap[String, Object]) {
  private type Watcher = KafkaConsumer[Array[Byte], Array[Byte]]
  /** Only the thread that watches uses it, but to wake it. */
  @volatile private var consumer: Option[Watcher] = None
  @volatile private var restsUntil = System.nanoTime()
  private var current: Option[Watching] = None
  private val turn = new Object

  private final class Watching(val seen: Offset) extends Runnable {
    @volatile var came = false
    @volatile var over = false
    // that of the query's thread, which sees all jars: Kafka's clients load classes by their names
    private val loader = Thread.currentThread.getContextClassLoader

    override def run(): Unit = turn.synchronized { // after the one before, which was woken
      try {
        Thread.currentThread.setContextClassLoader(loader)
        if (!over) {
          val one = consumer.getOrElse(make())
          moveTo(one, seen)
          while (!over && !came) came = poll(one)
        }
      } catch {
        case NonFatal(_) =>
          restsUntil = System.nanoTime() + TopicWatch.RestNanos
          over = true
          drop()
      }
    }

    private def poll(one: Watcher): Boolean =
      try !one.poll(TopicWatch.PollTime).isEmpty catch { case _: WakeupException => false }
  }

  /** Called on the query's thread. */
  def hasRecordsBehind(seen: Offset): Boolean = {
    if (!current.exists(w => w.seen == seen && !w.over) && System.nanoTime() - restsUntil >= 0) {
      end()
      val next = new Watching(seen)
      current = Some(next)
      Sweeper.working.execute(next)
    }
    current.exists(w => w.came && w.seen == seen)
  }

  def close(): Unit = if (current.isDefined) {
    end()
    Sweeper.later(turn.synchronized(drop()))
  }

  private def end(): Unit = {
    current.foreach(_.over = true)
    current = None
    consumer.foreach(_.wakeup())
  }

  private def drop(): Unit = {
    consumer.foreach(_.close(Duration.ZERO))
    consumer = None
  }

  private def make(): Watcher = {
    val settings = new JHashMap[String, Object](client)
    settings.remove(ConsumerConfig.GROUP_ID_CONFIG)
    settings.putAll(TopicWatch.Settings)
    val made = new KafkaConsumer[Array[Byte], Array[Byte]](settings)
    consumer = Some(made)
    made
  }

  private def moveTo(one: Watcher, seen: Offset): Unit = {
    val ends = TopicWatch.partitions(seen.json)
    if (one.assignment != ends.keySet.asJava) one.assign(ends.keySet.asJava)
    ends.foreach { case (partition, end) => one.seek(partition, end) }
  }
}

private object TopicWatch {
  private val mapper = new ObjectMapper()
  private val RestNanos = TimeUnit.MINUTES.toNanos(1)
  private val PollTime = Duration.ofSeconds(5)
  private val Settings: JMap[String, Object] = Map[String, Object](
    ConsumerConfig.FETCH_MIN_BYTES_CONFIG -> Int.box(1),
    ConsumerConfig.FETCH_MAX_WAIT_MS_CONFIG -> Int.box(2000),
    // the smallest answer: a broker sends a first record whatever its size
    ConsumerConfig.FETCH_MAX_BYTES_CONFIG -> Int.box(1),
    ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG -> Int.box(1),
    ConsumerConfig.MAX_POLL_RECORDS_CONFIG -> Int.box(1)).asJava

  /** Spark's `{"topic": {"0": 23}}`. */
  private def partitions(json: String): Map[TopicPartition, Long] =
    mapper.readTree(json).properties.asScala.flatMap { topic =>
      topic.getValue.properties.asScala.map(p => new TopicPartition(topic.getKey, p.getKey.toInt) -> p.getValue.asLong)
    }.toMap
}
