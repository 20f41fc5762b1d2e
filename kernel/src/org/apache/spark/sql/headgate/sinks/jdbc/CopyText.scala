/** Owns rows as the text that COPY reads: a line a row, tabs between the columns. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.time.LocalDate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, SpecializedGetters}
import org.apache.spark.sql.headgate.json.{JsonBytes, JsonRowWriter}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform

/** One instance serves one task.
  *
  * @param struct the sink's rows
  */
private[headgate] final class CopyText(columns: Seq[WrittenColumn], struct: StructType, timeZone: String) {
  import CopyText._

  private val fields = columns.map(_.field).toArray
  private val values = columns.map { c =>
    if (c.form == Form.Json) new JsonValue(struct(c.field).dataType, timeZone)
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
  private val NullText = "\\N".getBytes(ISO_8859_1)
  private val SecondMicros = 1000000L
  private val DayMicros = 86400L * SecondMicros

  private abstract class Value {
    /** In the form of COPY: escaped. */
    def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit

    /** Whether it must stand in quotes in an array. */
    def quoted: Boolean = false
  }

  private def valueOf(dataType: DataType): Value = dataType match {
    case BooleanType => (row, i, out) => out.byte(if (row.getBoolean(i)) 't' else 'f')
    case ByteType => (row, i, out) => out.appendLong(row.getByte(i))
    case ShortType => (row, i, out) => out.appendLong(row.getShort(i))
    case IntegerType => (row, i, out) => out.appendLong(row.getInt(i))
    case LongType => (row, i, out) => out.appendLong(row.getLong(i))
    case FloatType => (row, i, out) => {
      val v = row.getFloat(i)
      if (java.lang.Float.isFinite(v)) out.appendFloat(v) else ascii(v.toString, out)
    }
    case DoubleType => (row, i, out) => {
      val v = row.getDouble(i)
      if (java.lang.Double.isFinite(v)) out.appendDouble(v) else ascii(v.toString, out)
    }
    case d: DecimalType if d.precision <= Decimal.MAX_LONG_DIGITS => new ShortDecimal(d)
    case d: DecimalType => (row, i, out) =>
      ascii(row.getDecimal(i, d.precision, d.scale).toJavaBigDecimal.toPlainString, out)
    case _: StringType => TextValue
    case BinaryType => BytesValue
    case DateType => new DateValue
    case TimestampType => new TimeValue("+00")
    case TimestampNTZType => new TimeValue("")
    case ArrayType(element, _) => new ArrayValue(valueOf(element))
    case other => throw new IllegalArgumentException(s"no column of a table holds ${other.sql}")
  }

  private def ascii(text: String, out: JsonBytes): Unit = out.raw(text.getBytes(ISO_8859_1))

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

  /** One whose digits fit into a long, as most do. */
  private final class ShortDecimal(of: DecimalType) extends Value {
    private val one = Array.iterate(1L, of.scale + 1)(_ * 10).last

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      val digits = row.getDecimal(i, of.precision, of.scale).toUnscaledLong
      if (digits < 0) out.byte('-')
      val size = Math.abs(digits)
      out.appendLong(size / one)
      if (one > 1) out.byte('.')
      var place = one / 10
      while (place > 0) {
        out.byte(('0' + size / place % 10).toInt)
        place /= 10
      }
    }
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

  /** As the database reads dates in any of its styles. */
  private final class Days {
    private var day = Long.MinValue
    private var text: Array[Byte] = _
    var isBefore: Boolean = false

    /** Without the mark of years before the first, which comes last. */
    def write(of: Long, out: JsonBytes): Unit = {
      if (of != day) {
        val date = LocalDate.ofEpochDay(of)
        isBefore = date.getYear <= 0
        val year = if (isBefore) 1 - date.getYear else date.getYear
        text = f"$year%04d-${date.getMonthValue}%02d-${date.getDayOfMonth}%02d".getBytes(ISO_8859_1)
        day = of
      }
      out.raw(text)
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
      val rest = Math.floorMod(micros, DayMicros)
      val seconds = (rest / SecondMicros).toInt
      out.byte(' ')
      pair(seconds / 3600, out)
      out.byte(':')
      pair(seconds / 60 % 60, out)
      out.byte(':')
      pair(seconds % 60, out)
      fraction((rest % SecondMicros).toInt, out)
      out.raw(zoneText)
      if (days.isBefore) out.raw(Before)
    }

    private def pair(n: Int, out: JsonBytes): Unit = {
      out.byte('0' + n / 10)
      out.byte('0' + n % 10)
    }

    private def fraction(micros: Int, out: JsonBytes): Unit = if (micros != 0) {
      out.byte('.')
      pair(micros / 10000, out)
      pair(micros / 100 % 100, out)
      pair(micros % 100, out)
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

  /** A value as the only field of an object; the object around it is cut off. */
  private final class JsonValue(dataType: DataType, timeZone: String) extends Value {
    private val json = new JsonRowWriter(StructType(Seq(StructField("v", dataType))), timeZone)
    private val holder = new GenericInternalRow(1)
    private val alone = new JsonBytes(256)
    private val before = "{\"v\":".getBytes(UTF_8).length

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      holder.update(0, row.get(i, dataType))
      alone.clear()
      json.write(holder, alone)
      escape(alone.array, before, alone.length - 1, out)
    }
  }
}
