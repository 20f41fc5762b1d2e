/** Owns turning one raw record into one decoded row, inside a task. */
package org.apache.spark.sql.headgate.decode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.headgate.StepCounter
import org.apache.spark.sql.headgate.json.{FlatJsonReader, JacksonReader}
import org.apache.spark.unsafe.types.UTF8String

/** Decodes the records of one task; the row it gives is overwritten by the next.
  *
  * @param raw where key, value, partition, offset and timestamp are in the row that comes in
  */
final class RecordDecoder(
    spec: DecodeSpec,
    raw: Array[Int],
    timeZone: String,
    recordsOut: StepCounter,
    recordsMalformed: StepCounter) {
  private val Array(key, value, partition, offset, timestamp) = raw
  private val columns = spec.schema.length
  private val writer = new UnsafeRowWriter(columns + 3, 64 + 32 * columns)
  private val flat = new FlatJsonReader(spec.schema)
  private lazy val sure = new JacksonReader(spec.schema, timeZone)
  private lazy val keys = new KeyReader(spec, timeZone)
  private lazy val toUnsafe = UnsafeProjection.create(spec.outputSchema)
  private lazy val topic = UTF8String.fromString(spec.topic)

  // The fast reader is worth its time only where it mostly succeeds.
  private var tryFlat = FlatJsonReader.supports(spec.schema)
  private var missed = 0

  def decode(row: InternalRow): UnsafeRow = {
    if (row.isNullAt(value)) return withoutValue(row)
    val text = row.getUTF8String(value)
    if (tryFlat) {
      writer.reset()
      writer.zeroOutNullBytes()
      if (flat.read(text, writer)) {
        if (missed > 0) missed -= 1
        writer.write(columns, DecodeSpec.position(row.getInt(partition), row.getLong(offset)))
        writer.write(columns + 1, false)
        writer.setNullAt(columns + 2)
        recordsOut.inc()
        return writer.getRow
      }
      missed += 1
      if (missed == RecordDecoder.GiveUp) tryFlat = false
    }
    val parsed = sure.read(text)
    if (parsed == null) malformed(row, sure.reason)
    else {
      val out = new Array[Any](columns + 3)
      var c = 0
      while (c < columns) {
        out(c) = if (parsed.isNullAt(c)) null else parsed.get(c, spec.schema(c).dataType)
        c += 1
      }
      good(row, out, deleted = false)
    }
  }

  private def withoutValue(row: InternalRow): UnsafeRow =
    if (!spec.table) malformed(row, JacksonReader.Empty)
    else {
      val out = new Array[Any](columns + 3)
      if (keys.fill(if (row.isNullAt(key)) null else row.getUTF8String(key), out)) {
        good(row, out, deleted = true)
      } else malformed(row, keys.reason)
    }

  private def good(row: InternalRow, out: Array[Any], deleted: Boolean): UnsafeRow = {
    out(columns) = DecodeSpec.position(row.getInt(partition), row.getLong(offset))
    out(columns + 1) = deleted
    recordsOut.inc()
    toUnsafe(new GenericInternalRow(out))
  }

  private def malformed(row: InternalRow, reason: String): UnsafeRow = {
    val text = if (row.isNullAt(value)) null else row.getUTF8String(value)
    if (spec.failsOnMalformed) {
      throw MalformedRecordException(
        spec.step, spec.topic, row.getInt(partition), row.getLong(offset), reason,
        if (text == null) null else text.toString)
    }
    val out = new Array[Any](columns + 3)
    out(columns) = DecodeSpec.position(row.getInt(partition), row.getLong(offset))
    out(columns + 1) = false
    out(columns + 2) = InternalRow(
      topic,
      row.getInt(partition),
      row.getLong(offset),
      if (row.isNullAt(timestamp)) null else row.getLong(timestamp),
      if (row.isNullAt(key)) null else row.getUTF8String(key),
      text,
      UTF8String.fromString(reason))
    recordsMalformed.inc()
    toUnsafe(new GenericInternalRow(out))
  }
}

private object RecordDecoder {
  /** So many more misses than hits, and the fast reader is left out for the rest of the task. */
  val GiveUp = 1000
}
