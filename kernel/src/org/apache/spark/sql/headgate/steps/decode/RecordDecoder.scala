/** Owns turning one raw record into one decoded row, inside a task. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.json.JacksonReader
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.unsafe.types.UTF8String

/** Decodes the records of one task; the row it gives is overwritten by the next. */
final class RecordDecoder(
    spec: DecodeSpec,
    raw: RawColumns,
    timeZone: String,
    recordsOut: StepCounter,
    recordsMalformed: StepCounter) {
  private val columns = spec.schema.length
  private val writer = new UnsafeRowWriter(columns + 3, 64 + 32 * columns)
  private val values = spec.format.decoder(spec.valueSchema, !raw.value.isBinary, timeZone)
  private val metadata = new MetadataColumns(spec, raw)
  private lazy val keys = spec.format.keys(spec, !raw.key.isBinary, timeZone)
  private lazy val toUnsafe = GeneratedCode.projection(spec.outputSchema)

  def decode(row: InternalRow): UnsafeRow = {
    val misfit = metadata.misfit(row)
    if (misfit != null) return malformed(row, misfit)
    val value = raw.value.of(row)
    if (value == null) return withoutValue(row)
    writer.reset()
    writer.zeroOutNullBytes()
    if (values.write(value, writer)) {
      metadata.write(row, writer)
      writer.write(columns, position(row))
      writer.write(columns + 1, false)
      writer.setNullAt(columns + 2)
      recordsOut.inc()
      return writer.getRow
    }
    val out = new Array[Any](columns + 3)
    val reason = values.read(value, out)
    if (reason != null) malformed(row, reason)
    else if (values.deletes) deletion(row, out)
    else good(row, out, deleted = false)
  }

  /** A value that deletes says which row by itself, or leaves it to the record's key. */
  private def deletion(row: InternalRow, out: Array[Any]): UnsafeRow =
    if (keys.keepOnly(out) || keys.fill(raw.key.of(row), out)) good(row, out, deleted = true)
    else malformed(row, keys.reason)

  private def withoutValue(row: InternalRow): UnsafeRow = {
    val out = new Array[Any](columns + 3)
    if (spec.table) {
      if (keys.fill(raw.key.of(row), out)) good(row, out, deleted = true)
      else malformed(row, keys.reason)
    } else if (values.takesNull) good(row, out, deleted = false)
    else malformed(row, JacksonReader.Empty)
  }

  private def good(row: InternalRow, out: Array[Any], deleted: Boolean): UnsafeRow = {
    metadata.fill(row, out)
    out(columns) = position(row)
    out(columns + 1) = deleted
    recordsOut.inc()
    toUnsafe(new GenericInternalRow(out))
  }

  private def malformed(row: InternalRow, reason: String): UnsafeRow = {
    val text = raw.value.shown(row)
    if (spec.failsOnMalformed) {
      throw MalformedRecordException(
        spec.step, topic(row), row.getInt(raw.partition), row.getLong(raw.offset), reason,
        if (text == null) null else text.toString)
    }
    val out = new Array[Any](columns + 3)
    out(columns) = position(row)
    out(columns + 1) = false
    out(columns + 2) = InternalRow(
      UTF8String.fromString(topic(row)),
      row.getInt(raw.partition),
      row.getLong(raw.offset),
      if (row.isNullAt(raw.timestamp)) null else row.getLong(raw.timestamp),
      raw.key.shown(row),
      text,
      UTF8String.fromString(reason))
    recordsMalformed.inc()
    toUnsafe(new GenericInternalRow(out))
  }

  /** The record's own topic where the source tells it: a pattern of names reads many. */
  private def topic(row: InternalRow): String =
    if (raw.topic < 0 || row.isNullAt(raw.topic)) spec.topic
    else spec.topic.substring(0, spec.topic.lastIndexOf('/') + 1) + row.getUTF8String(raw.topic)

  private def position(row: InternalRow): Long = {
    val inPartition = if (raw.position >= 0) raw.position else raw.offset
    DecodeSpec.position(row.getInt(raw.partition), row.getLong(inPartition))
  }
}
