/** Owns the stream of a Kafka source on the driver: where its topics end, asked for all sources at once. */
package org.apache.spark.sql.headgate.sources.kafka

import java.util.{Map => JMap, Optional}
import java.util.concurrent.{Callable, ExecutionException, Future}

import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.headgate.batch.{BatchGuards, TellsOfRecords}
import org.apache.spark.sql.headgate.brokers.core.Sweeper
import org.apache.spark.sql.headgate.spark.{KafkaPart, RunningQuery, Sessions}

/** Spark's own stream, but for two things.
  *
  * Spark asks one source after the other where it ends, before each batch, and each answer is two round
  * trips. Here the first one that is asked lets the others ask at the same time; they have their answers
  * when Spark comes to them. An answer serves once, and only for the start that it was asked for.
  *
  * Its tasks read with consumers that are kept: see [[TopicReader]]. While its query waits, one more consumer
  * tells when records come: see [[TopicWatch]].
  */
private[headgate] final class KafkaTopicStream private (sparks: KafkaTopicStream.Sparks, keepConsumers: Boolean)
  extends MicroBatchStream with SupportsTriggerAvailableNow with ReportsSourceMetrics with TellsOfRecords {
  import KafkaTopicStream.Asked

  private var asked: Option[Asked] = None
  private lazy val watch =
    if (keepConsumers) KafkaPart.clientOf(sparks).filterNot(KafkaPart.hasToken).map(new TopicWatch(_)) else None

  override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
    val answer = asked.map(a => a -> KafkaTopicStream.result(a.answer))
    if (asked.isEmpty) askOthers()
    asked = None
    answer.collect { case (a, end) if a.start == start && a.limit == limit => end }
      .getOrElse(sparks.latestOffset(start, limit))
  }

  private def askOthers(): Unit =
    RunningQuery.of(Sessions.active).toSeq.flatMap(_.offsetsBefore).foreach {
      case (other: KafkaTopicStream, start) if other ne this => other.ask(start)
      case _ =>
    }

  private def ask(at: Offset): Unit = {
    val (start, limit) = (sparks.deserializeOffset(at.json), sparks.getDefaultReadLimit)
    val work: Callable[Offset] = () => sparks.latestOffset(start, limit)
    asked = Some(Asked(start, limit, Sweeper.working.submit(work)))
  }

  override def hasRecordsBehind(seen: Offset): Boolean = watch.exists(_.hasRecordsBehind(seen))

  override def createReaderFactory(): PartitionReaderFactory = {
    val made = sparks.createReaderFactory()
    if (keepConsumers) TopicReaderFactory(made) else made
  }

  override def getDefaultReadLimit: ReadLimit = sparks.getDefaultReadLimit
  override def reportLatestOffset(): Offset = sparks.reportLatestOffset()
  override def latestOffset(): Offset = sparks.latestOffset()
  override def initialOffset(): Offset = sparks.initialOffset()
  override def deserializeOffset(json: String): Offset = sparks.deserializeOffset(json)
  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    BatchGuards.begin(Sessions.active)
    sparks.planInputPartitions(start, end)
  }
  override def prepareForTriggerAvailableNow(): Unit = sparks.prepareForTriggerAvailableNow()
  override def metrics(latest: Optional[Offset]): JMap[String, String] = sparks.metrics(latest)
  override def commit(end: Offset): Unit = sparks.commit(end)
  override def stop(): Unit = {
    watch.foreach(_.close())
    sparks.stop()
  }
  override def toString: String = sparks.toString
}

private[headgate] object KafkaTopicStream {
  private type Sparks = MicroBatchStream with SupportsTriggerAvailableNow with ReportsSourceMetrics
  private final case class Asked(start: Offset, limit: ReadLimit, answer: Future[Offset])

  def apply(sparks: MicroBatchStream, keepConsumers: Boolean): MicroBatchStream = sparks match {
    case known: MicroBatchStream with SupportsTriggerAvailableNow with ReportsSourceMetrics =>
      new KafkaTopicStream(known, keepConsumers)
    case other => throw new IllegalStateException(s"a stream of Kafka topics was expected, got $other")
  }

  private def result(answer: Future[Offset]): Offset =
    try answer.get() catch { case e: ExecutionException => throw e.getCause }
}
