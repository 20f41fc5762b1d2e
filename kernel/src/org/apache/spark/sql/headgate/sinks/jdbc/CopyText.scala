/** Owns rows as the text that COPY reads: a line a row, tabs between the columns. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.ISO_8859_1

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.headgate.json.JsonBytes
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

/** One instance serves one task.
  *
  * @param struct the sink's rows
  */
private[headgate] final class CopyText(columns: Seq[WrittenColumn], struct: StructType, timeZone: String) {
  import CopyText._
  import ValueText.{JsonValue, Value}

  private val fields = columns.map(_.field).toArray
  private val values = columns.map { c =>
    if (c.form == Form.Json) new JsonValue(struct(c.field).dataType, timeZone, escape)
    else valueOf(struct(c.field).dataType)
  }.toArray

  /** All columns of a row, and no line break. */
  def write(row: InternalRow, out: JsonBytes): Unit = {
    var i = 0
    while (i < fields.length) {
      if (i > 0) out.byte('\t')
      if (row.isNullAt(fields(i))) out.raw(NullText) else values(i).write(row, fields(i), out)
      i += 1
    }
  }
}

private object CopyText {
  import ValueText.{ascii, clock, DayMicros, Days, Value}

  private val NullText = "\\N".getBytes(ISO_8859_1)

  private def valueOf(dataType: DataType): Value = dataType match {
    case BooleanType => (row, i, out) => out.byte(if (row.getBoolean(i)) 't' else 'f')
    case ByteType | ShortType | IntegerType | LongType | _: DecimalType => ValueText.exact(dataType)
    case FloatType => (row, i, out) => {
      val v = row.getFloat(i)
      if (java.lang.Float.isFinite(v)) out.appendFloat(v) else ascii(v.toString, out)
    }
    case DoubleType => (row, i, out) => {
      val v = row.getDouble(i)
      if (java.lang.Double.isFinite(v)) out.appendDouble(v) else ascii(v.toString, out)
    }
    case _: StringType => TextValue
    case BinaryType => BytesValue
    case DateType => new DateValue
    case TimestampType => new TimeValue("+00")
    case TimestampNTZType => new TimeValue("")
    case ArrayType(element, _) => new ArrayValue(valueOf(element))
    case other => throw new IllegalArgumentException(s"no column of a table holds ${other.sql}")
  }

  /** A tab, a line break and a backslash would end the column or the row. */
  private def escape(bytes: Array[Byte], from: Int, end: Int, out: JsonBytes): Unit = {
    var plain = from
    var i = from
    while (i < end) {
      val c = bytes(i)
      if (c == '\\' || (c < ' ' && c >= 0 && (c == '\t' || c == '\n' || c == '\r'))) {
        out.raw(bytes, plain, i - plain)
        out.byte('\\')
        out.byte(if (c == '\\') '\\' else if (c == '\t') 't' else if (c == '\n') 'n' else 'r')
        plain = i + 1
      }
      i += 1
    }
    out.raw(bytes, plain, end - plain)
  }

  private object TextValue extends Value {
    override def quoted: Boolean = true

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      val text = row.getUTF8String(i)
      text.getBaseObject match {
        case bytes: Array[Byte] =>
          val from = (text.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt
          escape(bytes, from, from + text.numBytes, out)
        case _ =>
          val bytes = text.getBytes
          escape(bytes, 0, bytes.length, out)
      }
    }
  }

  private object BytesValue extends Value {
    private val Digits = "0123456789abcdef".getBytes(ISO_8859_1)
    override def quoted: Boolean = true

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      out.byte('\\')
      out.byte('\\')
      out.byte('x')
      row.getBinary(i).foreach { b =>
        out.byte(Digits((b >> 4) & 15))
        out.byte(Digits(b & 15))
      }
    }
  }

  private val Before = " BC".getBytes(ISO_8859_1)

  private final class DateValue extends Value {
    private val days = new Days
    override def quoted: Boolean = true

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      days.write(row.getInt(i), out)
      if (days.isBefore) out.raw(Before)
    }
  }

  private final class TimeValue(zone: String) extends Value {
    private val days = new Days
    private val zoneText = zone.getBytes(ISO_8859_1)
    override def quoted: Boolean = true

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      val micros = row.getLong(i)
      days.write(Math.floorDiv(micros, DayMicros), out)
      out.byte(' ')
      clock(Math.floorMod(micros, DayMicros), out)
      out.raw(zoneText)
      if (days.isBefore) out.raw(Before)
    }
  }

  /** `{1,NULL,"a"}`; what stands in quotes is escaped twice, for the array and for COPY. */
  private final class ArrayValue(element: Value) extends Value {
    private val alone = new JsonBytes(64)

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      val array = row.getArray(i)
      out.byte('{')
      (0 until array.numElements()).foreach { e =>
        if (e > 0) out.byte(',')
        if (array.isNullAt(e)) ascii("NULL", out)
        else if (!element.quoted) element.write(array, e, out)
        else {
          alone.clear()
          element.write(array, e, alone)
          quote(out)
        }
      }
      out.byte('}')
    }

    /** The element is escaped for COPY already: each of its backslashes stands for one that the array
      * reads, and that has to be told from an escape of the array's own.
      */
    private def quote(out: JsonBytes): Unit = {
      out.byte('"')
      var i = 0
      while (i < alone.length) {
        val c = alone.array(i)
        if (c == '"') {
          out.byte('\\')
          out.byte('\\')
        } else if (c == '\\' && alone.array(i + 1) == '\\') {
          out.byte('\\')
          out.byte('\\')
          out.byte('\\')
          i += 1
        } else if (c == '\\') {
          // a tab or line break, which an array may hold as it is
          out.byte('\\')
          i += 1
        }
        out.byte(alone.array(i))
        i += 1
      }
      out.byte('"')
    }
  }
}
