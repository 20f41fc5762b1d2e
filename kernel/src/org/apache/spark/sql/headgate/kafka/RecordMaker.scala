/** Owns a sink's rows as records of Kafka. */
package org.apache.spark.sql.headgate.kafka

import java.lang.{Long => JLong}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Arrays

import org.apache.kafka.clients.producer.ProducerRecord
import org.apache.kafka.common.header.Header
import org.apache.kafka.common.header.internals.{RecordHeader, RecordHeaders}

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.json.{JsonBytes, JsonRowWriter}
import org.apache.spark.sql.types.{BinaryType, DataType, MapType, StringType, StructType}

/** The struct begins with the parts that `lead` names; without a value among them, the value is the
  * other columns as JSON. One instance serves one task.
  */
private[kafka] final class RecordMaker(
    topic: String, struct: StructType, lead: Seq[String], timeZone: String) {

  private val key = lead.indexOf("key")
  private val value = lead.indexOf("value")
  private val headers = lead.indexOf("headers")
  private val timestamp = lead.indexOf("timestamp")
  private val keyIsText = key >= 0 && isText(struct(key).dataType, "key")
  private val valueIsText = value >= 0 && isText(struct(value).dataType, "value")
  private val headerIsText = headers >= 0 && (struct(headers).dataType match {
    case MapType(_: StringType, of, _) => isText(of, "headers")
    case other => throw new IllegalArgumentException(s"headers of $topic: a map, not $other")
  })
  private val json = if (value >= 0) null else new JsonRowWriter(struct, timeZone, lead.length)
  private val bytes = new JsonBytes(1 << 12)

  def record(row: InternalRow): ProducerRecord[Array[Byte], Array[Byte]] =
    new ProducerRecord(topic, null, timestampOf(row), keyOf(row), valueOf(row), headersOf(row))

  private def keyOf(row: InternalRow): Array[Byte] = if (key < 0) null else part(row, key, keyIsText)

  private def valueOf(row: InternalRow): Array[Byte] =
    if (value >= 0) part(row, value, valueIsText)
    else {
      bytes.clear()
      json.write(row, bytes)
      Arrays.copyOf(bytes.array, bytes.length)
    }

  /** Null where there is none: the producer's clock then gives the time. */
  private def timestampOf(row: InternalRow): JLong =
    if (timestamp < 0 || row.isNullAt(timestamp)) null
    else JLong.valueOf(Math.floorDiv(row.getLong(timestamp), 1000L))

  private def headersOf(row: InternalRow): java.lang.Iterable[Header] =
    if (headers < 0 || row.isNullAt(headers)) null
    else {
      val map = row.getMap(headers)
      val (names, values) = (map.keyArray(), map.valueArray())
      val made = new RecordHeaders()
      (0 until map.numElements()).foreach { i =>
        made.add(new RecordHeader(names.getUTF8String(i).toString, part(values, i, headerIsText)))
      }
      made
    }

  private def part(from: SpecializedGetters, i: Int, text: Boolean): Array[Byte] =
    if (from.isNullAt(i)) null else if (text) from.getUTF8String(i).getBytes else from.getBinary(i)

  private def isText(dataType: DataType, part: String): Boolean = dataType match {
    case _: StringType => true
    case BinaryType => false
    case other => throw new IllegalArgumentException(s"$part of $topic: text or bytes, not $other")
  }
}
