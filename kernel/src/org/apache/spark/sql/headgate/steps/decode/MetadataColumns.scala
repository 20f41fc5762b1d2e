/** Owns filling the columns that come from the record itself: its key, its place, its headers. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeMapData, UnsafeProjection}
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.catalyst.util.{ArrayData, MapData}
import org.apache.spark.sql.headgate.json.Utf8
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._

/** Fills the metadata's columns of a task's rows; they stand behind the value's columns. */
final class MetadataColumns(spec: DecodeSpec, raw: RawColumns) {
  import RecordPart._

  private val parts = spec.metadata.toArray
  private val ordinals = parts.map(raw.of)
  private val first = spec.valueColumns
  private val types = spec.schema.drop(first).map(_.dataType).toArray
  private lazy val unsafeHeaders = GeneratedCode.projection(Array[DataType](HeadersType))
  private lazy val unsafeProperties = GeneratedCode.projection(Array[DataType](PropertiesType))

  private val keyMustBeText = raw.key.isBinary &&
    parts.indices.exists(p => parts(p) == Key && types(p).isInstanceOf[StringType])

  /** Why the record's own parts do not fit their columns; null if they do. */
  def misfit(row: InternalRow): String =
    if (keyMustBeText && !row.isNullAt(raw.key.at) && !Utf8.isValid(raw.key.of(row))) {
      "the key is not valid UTF-8: its column must be BINARY"
    } else null

  /** Writes the columns to a row whose null bits are clear. */
  def write(row: InternalRow, out: UnsafeRowWriter): Unit = {
    var p = 0
    while (p < parts.length) {
      val from = ordinals(p)
      val to = first + p
      if (row.isNullAt(from)) out.setNullAt(to)
      else parts(p) match {
        case Key => out.write(to, raw.key.of(row))
        case Topic | MessageId => out.write(to, row.getUTF8String(from))
        case Partition => out.write(to, row.getInt(from))
        case Offset | Timestamp | EventTime => out.write(to, row.getLong(from))
        case Properties => out.write(to, unsafeMap(row.getMap(from)))
        case Headers =>
          val start = out.cursor()
          out.write(unsafeArray(row.getArray(from)))
          out.setOffsetAndSizeFromPreviousCursor(to, start)
      }
      p += 1
    }
  }

  /** Sets the columns of a row that is not made in place. */
  def fill(row: InternalRow, out: Array[Any]): Unit = parts.indices.foreach { p =>
    val from = ordinals(p)
    out(first + p) =
      if (row.isNullAt(from)) null
      else parts(p) match {
        case Key => if (types(p) == BinaryType) raw.key.of(row).getBytes else raw.key.of(row)
        case Topic | MessageId => row.getUTF8String(from)
        case Partition => row.getInt(from)
        case Offset | Timestamp | EventTime => row.getLong(from)
        case Headers => row.getArray(from)
        case Properties => row.getMap(from)
      }
  }

  private def unsafeArray(headers: ArrayData): UnsafeArrayData = headers match {
    case already: UnsafeArrayData => already
    case other => unsafeHeaders(InternalRow(other)).getArray(0)
  }

  private def unsafeMap(properties: MapData): UnsafeMapData = properties match {
    case already: UnsafeMapData => already
    case other => unsafeProperties(InternalRow(other)).getMap(0)
  }
}
