/** Owns reading the parts of a broker's record out of a sink's row. */
package org.apache.spark.sql.headgate.sinks.core

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types.{BinaryType, DataType, StringType, StructType}

/** The struct begins with the parts that `hidden` names; without a value among them, the value is the
  * other columns, encoded. A row that deletes has no value. One instance serves one task.
  */
final class RecordParts(
    topic: String,
    struct: StructType,
    hidden: Seq[String],
    timeZone: String,
    encoding: ValueEncoding = JsonEncoding) {
  private val key = hidden.indexOf("key")
  private val value = hidden.indexOf("value")
  private val valueIsText = value >= 0 && isText(struct(value).dataType, "value")
  private val deleted = hidden.indexOf(RecordParts.Deleted)
  private val encoder = if (value >= 0) null else encoding.encoder(struct, hidden.length, timeZone)

  val keyIsText: Boolean = key >= 0 && isText(struct(key).dataType, "key")

  def keyOf(row: InternalRow): Array[Byte] = if (key < 0) null else part(row, key, keyIsText)

  def valueOf(row: InternalRow): Array[Byte] =
    if (deleted >= 0 && row.getBoolean(deleted)) null
    else if (value >= 0) part(row, value, valueIsText)
    else encoder.encode(row)

  /** Text or bytes as bytes, null where there are none. */
  def part(from: SpecializedGetters, i: Int, text: Boolean): Array[Byte] =
    if (from.isNullAt(i)) null else if (text) from.getUTF8String(i).getBytes else from.getBinary(i)

  def isText(dataType: DataType, part: String): Boolean = dataType match {
    case _: StringType => true
    case BinaryType => false
    case other => throw new IllegalArgumentException(s"$part of $topic: text or bytes, not $other")
  }
}

object RecordParts {

  /** A part that is true in a row which deletes that of its key. */
  val Deleted = "deleted"

  /** Milliseconds of a timestamp's microseconds, also before 1970. */
  def millis(micros: Long): Long = Math.floorDiv(micros, 1000L)
}
