/** Owns what we know of Spark's own Kafka source, which is private to its package. */
package org.apache.spark.sql.headgate.spark

import java.util.{Map => JMap}

import org.apache.kafka.clients.CommonClientConfigs
import org.apache.kafka.common.TopicPartition

import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.kafka010.KafkaTokenUtil
import org.apache.spark.sql.connector.catalog.TableProvider
import org.apache.spark.sql.connector.read.InputPartition
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.util.{UninterruptibleThread, Utils}

/** What a task reads of a topic: `until` is not part of it. */
final case class KafkaPart(topic: TopicPartition, from: Long, until: Long, client: JMap[String, Object],
    withHeaders: Boolean) {

  def hasToken: Boolean = KafkaPart.hasToken(client)
}

object KafkaPart {
  def provider(): TableProvider =
    Utils.classForName[TableProvider]("org.apache.spark.sql.kafka010.KafkaSourceProvider")
      .getConstructor().newInstance()

  /** None for anything but a range of known offsets. */
  def of(partition: InputPartition): Option[KafkaPart] = fields(partition) match {
    case Seq(range: Product, client: JMap[_, _], _: Long, _: Boolean, headers: Boolean) =>
      fields(range) match {
        case Seq(topic: TopicPartition, from: Long, until: Long, _) if from >= 0 && until >= from =>
          Some(KafkaPart(topic, from, until, client.asInstanceOf[JMap[String, Object]], headers))
        case _ => None
      }
    case _ => None
  }

  /** The same partition from a later offset on, for Spark's own reader. */
  def restOf(partition: InputPartition, from: Long): InputPartition = {
    val all = fields(partition)
    copied(partition, copied(all.head, fields(all.head).updated(1, from)) +: all.tail).asInstanceOf[InputPartition]
  }

  /** Whether Spark has a token for these brokers, which it renews in its own consumers. */
  def hasToken(client: JMap[String, Object]): Boolean = client.get(CommonClientConfigs.BOOTSTRAP_SERVERS_CONFIG) match {
    case servers: String => KafkaTokenUtil.findMatchingTokenClusterConfig(SparkEnv.get.conf, servers).isDefined
    case _ => false
  }

  /** The settings of the consumers that read a stream (KafkaMicroBatchStream), which its tasks get. */
  def clientOf(stream: MicroBatchStream): Option[JMap[String, Object]] =
    stream.getClass.getDeclaredFields.find(_.getName == "executorKafkaParams").map { field =>
      field.setAccessible(true)
      field.get(stream).asInstanceOf[JMap[String, Object]]
    }

  private def fields(of: Any): Seq[Any] = of match {
    case product: Product => product.productIterator.toSeq
    case _ => Nil
  }

  private def copied(of: Any, values: Seq[Any]): Any =
    of.getClass.getConstructors.head.newInstance(values.map(_.asInstanceOf[AnyRef]): _*)

  /** A Kafka client that is interrupted may hang (KAFKA-1894): a task that is killed ends between two calls. */
  def uninterrupted[T](body: => T): T = {
    Option(TaskContext.get()).foreach(_.killTaskIfInterrupted())
    Thread.currentThread() match {
      case thread: UninterruptibleThread => thread.runUninterruptibly(body)
      case _ => body
    }
  }
}
