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

import org.apache.spark.sql.connector.read.streaming.Offset
import org.apache.spark.sql.headgate.brokers.core.Sweeper
import org.apache.spark.sql.headgate.spark.KafkaPart

/**
 * It stands where the last look found the ends of all partitions, and has a fetch waiting at each broker,
 * which answers as soon as there is a record. So a look is no request: it sees whether an answer has come.
 * A broker gets one fetch in some seconds while nothing comes. The record that it sends is thrown away.
 *
 * Where topics really end, whether there are new partitions, and what is wrong, is asked by Spark's look.
 */
private[kafka] final class TopicWatch(client: JMap[String, Object]) {
  private var consumer: Option[KafkaConsumer[Array[Byte], Array[Byte]]] = None
  private var at: Option[Offset] = None
  private var restsUntil = System.nanoTime()

  def hasRecordsBehind(seen: Offset): Boolean =
    System.nanoTime() - restsUntil >= 0 && KafkaPart.uninterrupted {
      try {
        val one = consumer.getOrElse(make())
        if (!at.contains(seen)) moveTo(one, seen)
        val came = !one.poll(Duration.ZERO).isEmpty
        // its position is behind that record now
        if (came) at = None
        came
      } catch {
        case NonFatal(_) =>
          close()
          restsUntil = System.nanoTime() + TopicWatch.RestNanos
          false
      }
    }

  def close(): Unit = {
    val old = consumer
    consumer = None
    at = None
    old.foreach(one => Sweeper.later(one.close(Duration.ZERO)))
  }

  private def make(): KafkaConsumer[Array[Byte], Array[Byte]] = {
    val settings = new JHashMap[String, Object](client)
    settings.remove(ConsumerConfig.GROUP_ID_CONFIG)
    settings.putAll(TopicWatch.Settings)
    val made = new KafkaConsumer[Array[Byte], Array[Byte]](settings)
    consumer = Some(made)
    made
  }

  private def moveTo(one: KafkaConsumer[Array[Byte], Array[Byte]], seen: Offset): Unit = {
    val ends = TopicWatch.partitions(seen.json)
    if (one.assignment != ends.keySet.asJava) one.assign(ends.keySet.asJava)
    ends.foreach { case (partition, end) => one.seek(partition, end) }
    at = Some(seen)
  }
}

private object TopicWatch {
  private val mapper = new ObjectMapper()
  private val RestNanos = TimeUnit.MINUTES.toNanos(1)
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
