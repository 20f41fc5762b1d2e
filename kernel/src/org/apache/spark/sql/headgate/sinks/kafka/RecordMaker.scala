/** Owns a sink's rows as records of Kafka. */
package org.apache.spark.sql.headgate.sinks.kafka

import java.lang.{Long => JLong}

import org.apache.kafka.clients.producer.ProducerRecord
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.{RecordHeader, RecordHeaders}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.sinks.core.{RecordParts, ValueEncoding}
import org.apache.spark.sql.types.{MapType, StringType, StructType}

/** One instance serves one task. */
private[headgate] final class RecordMaker(
    topic: String,
    struct: StructType,
    hidden: Seq[String],
    timeZone: String,
    encoding: ValueEncoding) {

  private val parts = new RecordParts(topic, struct, hidden, timeZone, encoding)
  private val headers = hidden.indexOf("headers")
  private val timestamp = hidden.indexOf("timestamp")
  private val headerIsText = headers >= 0 && (struct(headers).dataType match {
    case MapType(_: StringType, of, _) => parts.isText(of, "headers")
    case other => throw new IllegalArgumentException(s"headers of $topic: a map, not $other")
  })

  def record(row: InternalRow): ProducerRecord[Array[Byte], Array[Byte]] = new ProducerRecord(
    topic, null, timestampOf(row), parts.keyOf(row), parts.valueOf(row), headersOf(row))

  /** Null where there is none: the producer's clock then gives the time. */
  private def timestampOf(row: InternalRow): JLong =
    if (timestamp < 0 || row.isNullAt(timestamp)) null
    else JLong.valueOf(RecordParts.millis(row.getLong(timestamp)))

  private def headersOf(row: InternalRow): java.lang.Iterable[Header] =
    if (headers < 0 || row.isNullAt(headers)) null
    else {
      val map = row.getMap(headers)
      val (names, values) = (map.keyArray(), map.valueArray())
      val made = new RecordHeaders()
      (0 until map.numElements()).foreach { i =>
        made.add(new RecordHeader(names.getUTF8String(i).toString, parts.part(values, i, headerIsText)))
      }
      made
    }
}
