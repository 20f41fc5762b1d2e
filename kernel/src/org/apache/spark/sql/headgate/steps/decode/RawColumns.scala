/** Owns where the raw columns are in a source's rows, and reading their bytes. */
package org.apache.spark.sql.headgate.steps.decode

import java.util.Base64

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}
import org.apache.spark.sql.headgate.json.Utf8
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The ordinals of the raw columns; -1 for a part that the source has not.
  *
  * @param position where a record stands among those of its partition in the batch; -1 where the
  *                 offsets say it (those of Pulsar's messages do not fit into a position)
  */
case class RawColumns(
    key: RawBytes, value: RawBytes, position: Int, private val parts: Map[RecordPart, Int]) {
  val partition: Int = of(RecordPart.Partition)
  val offset: Int = of(RecordPart.Offset)
  val timestamp: Int = of(RecordPart.Timestamp)
  val topic: Int = of(RecordPart.Topic)

  /** The ordinal of a part. */
  def of(part: RecordPart): Int = parts(part)
}

object RawColumns {

  /** Finds the columns by name; refuses a source that lacks one, or has it in another type. */
  def find(columns: Seq[Attribute], spec: DecodeSpec): RawColumns = {
    def refuse(why: String) =
      throw new IllegalArgumentException(s"a source of step '${spec.step}' gives $why")
    def at(name: String, fits: DataType => Boolean, isNeeded: Boolean = true): Int = {
      val found = columns.indexWhere(_.name == name)
      if (found >= 0 && fits(columns(found).dataType)) found
      else if (!isNeeded) -1
      else if (found < 0) refuse(s"no column '$name'")
      else refuse(s"'$name' as a ${columns(found).dataType.sql}")
    }
    def bytes(name: String) = {
      val found = at(name, RecordPart.Key.fits)
      RawBytes(found, columns(found).dataType == BinaryType)
    }
    val always = Seq(RecordPart.Partition, RecordPart.Offset, RecordPart.Timestamp)
    val parts = RecordPart.All.map { part =>
      part -> at(part.name, part.fits, always.contains(part) || spec.metadata.contains(part))
    }
    RawColumns(
      bytes("key"), bytes("value"), at("position", _ == LongType, isNeeded = false), parts.toMap)
  }
}

/** A column of bytes: BINARY where they may be anything (Kafka), STRING in our own topics. */
case class RawBytes(at: Int, isBinary: Boolean) {

  /** The bytes as they are in the row, or null. An UnsafeRow keeps both types alike, and so a text
    * is had from a BINARY without a copy; other rows keep an array.
    */
  def of(row: InternalRow): UTF8String =
    if (row.isNullAt(at)) null
    else if (!isBinary || row.isInstanceOf[UnsafeRow]) row.getUTF8String(at)
    else UTF8String.fromBytes(row.getBinary(at))

  /** The bytes for people and for `__hg_bad`: the text, or `base64:` where they are none. A text that
    * begins so is written in base64 as well, so that the bytes can be had back from any.
    */
  def shown(row: InternalRow): UTF8String = {
    val bytes = of(row)
    val isText = bytes == null ||
      (!isBinary || Utf8.isValid(bytes)) && !bytes.startsWith(RawBytes.Encoded)
    if (isText) bytes
    else UTF8String.fromString(
      s"${RawBytes.Encoded}${Base64.getEncoder.encodeToString(bytes.getBytes)}")
  }
}

object RawBytes {
  private val Encoded = UTF8String.fromString("base64:")
}
