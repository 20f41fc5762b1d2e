/** Owns a task's reading of a part of a Kafka topic. */
package org.apache.spark.sql.headgate.sources.kafka

import org.apache.kafka.clients.consumer.ConsumerRecord
import org.apache.kafka.common.KafkaException
import org.apache.kafka.common.errors.{InterruptException, WakeupException}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.connector.metric.CustomTaskMetric
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.headgate.spark.{GeneratedCode, KafkaPart}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** @param sparks reads what ours does not */
private[kafka] final case class TopicReaderFactory(sparks: PartitionReaderFactory) extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    KafkaPart.of(partition).filterNot(_.hasToken) match {
      case Some(part) => new TopicReader(part, from => sparks.createReader(KafkaPart.restOf(partition, from)))
      case None => sparks.createReader(partition)
    }
}

/** Reads with a cursor that goes on where the batch before has ended.
  *
  * Spark's own reader asks where a topic begins and ends after every fetch, moves its consumer there and
  * back, and so loses what that has fetched ahead: three round trips for a few rows. They are needed to
  * tell lost records from those that are not to be seen. So whenever something is not as expected, be it
  * an error, a gap that retention may have made, or no answer, Spark's reader goes on from there.
  *
  * @param sparksFrom Spark's own reader of the rest, from an offset on
  */
private[kafka] final class TopicReader(part: KafkaPart, sparksFrom: Long => PartitionReader[InternalRow])
  extends PartitionReader[InternalRow] {

  private val rows = new RecordRows(part.withHeaders)
  private var cursor: TopicCursor = _
  private var at = part.from
  private var row: InternalRow = _
  private var rest: PartitionReader[InternalRow] = _

  override def next(): Boolean =
    if (rest != null) rest.next()
    else if (at >= part.until) false
    else found() match {
      case Right(null) => at = part.until; false
      case Right(record) => row = rows(record); at = record.offset + 1; true
      case Left(place) => goOnAt(place); rest.next()
    }

  override def get(): InternalRow = if (rest != null) rest.get() else row

  override def close(): Unit = {
    if (cursor != null) TopicCursors.putBack(cursor)
    cursor = null
    if (rest != null) rest.close()
  }

  override def currentMetricsValues(): Array[CustomTaskMetric] =
    if (rest != null) rest.currentMetricsValues() else Array.empty

  /** The next record, null if there is none before the end, or where Spark's reader has to go on. */
  private def found(): Either[Long, ConsumerRecord[Array[Byte], Array[Byte]]] =
    try {
      if (cursor == null) cursor = TopicCursors.take(part)
      cursor.read(at, part.until)
    } catch {
      case e: KafkaException if !TopicReader.isInterrupt(e) => Left(at)
      // a consumer that was stopped on its way may be elsewhere than its cursor says
      case e: Throwable => drop(); throw e
    }

  private def goOnAt(place: Long): Unit = {
    drop()
    rest = sparksFrom(place)
    TopicReader.handedOver.incrementAndGet()
  }

  private def drop(): Unit = {
    if (cursor != null) TopicCursors.discard(cursor)
    cursor = null
  }
}

private[headgate] object TopicReader {
  private def isInterrupt(e: KafkaException): Boolean =
    e.isInstanceOf[InterruptException] || e.isInstanceOf[WakeupException]

  /** How often Spark's reader had to go on, in this process. */
  val handedOver = new java.util.concurrent.atomic.AtomicLong
}

/** Records as rows of Spark's Kafka source. */
private final class RecordRows(withHeaders: Boolean) {
  private val toUnsafe = GeneratedCode.projection(if (withHeaders) RecordRows.headed else RecordRows.plain)

  def apply(r: ConsumerRecord[Array[Byte], Array[Byte]]): InternalRow = {
    val values = new Array[Any](if (withHeaders) 8 else 7)
    values(0) = r.key
    values(1) = r.value
    values(2) = UTF8String.fromString(r.topic)
    values(3) = r.partition
    values(4) = r.offset
    values(5) = r.timestamp * 1000L
    values(6) = r.timestampType.id
    if (withHeaders) values(7) = headersOf(r)
    toUnsafe(new GenericInternalRow(values))
  }

  private def headersOf(r: ConsumerRecord[Array[Byte], Array[Byte]]): GenericArrayData = {
    val all = r.headers.toArray
    if (all.isEmpty) null
    else new GenericArrayData(all.map(h =>
      new GenericInternalRow(Array[Any](UTF8String.fromString(h.key), h.value))))
  }
}

private object RecordRows {
  private val plain = new StructType().add("key", BinaryType).add("value", BinaryType).add("topic", StringType)
    .add("partition", IntegerType).add("offset", LongType).add("timestamp", TimestampType)
    .add("timestampType", IntegerType)
  private val headed = plain.add("headers",
    ArrayType(new StructType().add("key", StringType).add("value", BinaryType)))
}
