/** Owns rows as the text that INSERT of MySQL reads: values in brackets, with commas between them. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.time.LocalDate

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.headgate.json.JsonBytes
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** A value that the database would change without saying so.
  *
  * @param text what it is, in the middle of a sentence
  */
private[headgate] final class UnfitValue(val column: String, val text: String) extends RuntimeException(text)

/** One instance serves one task; what it writes needs a session whose text is UTF-8, with backslashes.
  *
  * @param struct the sink's rows
  */
private[headgate] final class InsertText(columns: Seq[WrittenColumn], struct: StructType, timeZone: String) {
  import InsertText._
  import ValueText.{JsonValue, Value}

  private val fields = columns.map(_.field).toArray
  private val values: Array[Value] = columns.map { c =>
    val dataType = struct(c.field).dataType
    if (c.form == Form.Json) new Quoted(new JsonValue(dataType, timeZone, escape)) else valueOf(dataType, c)
  }.toArray

  /** All columns of a row, without the brackets. */
  def write(row: InternalRow, out: JsonBytes): Unit = {
    var i = 0
    while (i < fields.length) {
      if (i > 0) out.byte(',')
      write(row, i, out)
      i += 1
    }
  }

  private def write(row: InternalRow, i: Int, out: JsonBytes): Unit =
    if (row.isNullAt(fields(i))) out.raw(NullText) else values(i).write(row, fields(i), out)

  /** The columns of a row for people, also those that cannot be written. */
  def shown(row: InternalRow): Seq[String] = fields.indices.map { i =>
    val out = new JsonBytes(64)
    try {
      write(row, i, out)
      SqlValues.split(new String(out.array, 0, out.length, UTF_8)).mkString
    } catch { case unfit: UnfitValue => unfit.text }
  }
}

private object InsertText {
  import ValueText.{clock, DayMicros, Days, Value}

  private val NullText = "NULL".getBytes(ISO_8859_1)
  private val LastYear = 9999

  private def valueOf(dataType: DataType, column: WrittenColumn): Value = dataType match {
    case BooleanType => (row, i, out) => out.byte(if (row.getBoolean(i)) '1' else '0')
    case FloatType => (row, i, out) => {
      val v = row.getFloat(i)
      if (!java.lang.Float.isFinite(v)) throw new UnfitValue(column.name, v.toString)
      out.appendFloat(v)
    }
    case DoubleType => (row, i, out) => {
      val v = row.getDouble(i)
      if (!java.lang.Double.isFinite(v)) throw new UnfitValue(column.name, v.toString)
      out.appendDouble(v)
    }
    case _: StringType => new Quoted(new TextValue(column))
    case BinaryType => BytesValue
    case DateType => new Quoted(new DateValue(column))
    case TimestampType | TimestampNTZType => new Quoted(new TimeValue(column))
    case other => ValueText.exact(other)
  }

  private final class Quoted(value: Value) extends Value {
    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      out.byte('\'')
      value.write(row, i, out)
      out.byte('\'')
    }
  }

  /** A quote would end the text, and a backslash begins an escape. */
  private def escape(bytes: Array[Byte], from: Int, end: Int, out: JsonBytes): Unit = {
    var plain = from
    var i = from
    while (i < end) {
      val c = bytes(i)
      if (c == '\'' || c == '\\' || c == 0) {
        out.raw(bytes, plain, i - plain)
        out.byte('\\')
        out.byte(if (c == 0) '0' else c)
        plain = i + 1
      }
      i += 1
    }
    out.raw(bytes, plain, end - plain)
  }

  private final class TextValue(column: WrittenColumn) extends Value {
    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      val text: UTF8String = row.getUTF8String(i)
      // the statement is a text of Java's, which would put other characters there
      if (!text.isValid) throw new UnfitValue(column.name, "text that is not UTF-8")
      val bytes = text.getBytes
      escape(bytes, 0, bytes.length, out)
    }
  }

  private object BytesValue extends Value {
    private val Digits = "0123456789abcdef".getBytes(ISO_8859_1)

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      out.byte('x')
      out.byte('\'')
      row.getBinary(i).foreach { b =>
        out.byte(Digits((b >> 4) & 15))
        out.byte(Digits(b & 15))
      }
      out.byte('\'')
    }
  }

  /** The server reads the first four digits of a longer year as a year, and the next as a month. */
  private def inYears(day: Long, column: WrittenColumn): Unit = if (day < FirstDay || day > LastDay) {
    throw new UnfitValue(column.name, s"a day outside of the years 1 to $LastYear")
  }

  private val FirstDay = LocalDate.of(1, 1, 1).toEpochDay
  private val LastDay = LocalDate.of(LastYear, 12, 31).toEpochDay

  private final class DateValue(column: WrittenColumn) extends Value {
    private val days = new Days

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      val day = row.getInt(i).toLong
      inYears(day, column)
      days.write(day, out)
    }
  }

  /** In UTC, as the session has it. */
  private final class TimeValue(column: WrittenColumn) extends Value {
    private val days = new Days
    private val step = Array.iterate(1L, TableColumn.Micros - column.digits + 1)(_ * 10).last

    override def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      val micros = row.getLong(i)
      val day = Math.floorDiv(micros, DayMicros)
      inYears(day, column)
      // the server would round it
      if (micros % step != 0) {
        throw new UnfitValue(column.name, s"a time with more than ${column.digits} digits of a second")
      }
      days.write(day, out)
      out.byte(' ')
      clock(Math.floorMod(micros, DayMicros), out)
    }
  }
}

/** Reads what [[InsertText]] writes. Not by a regular expression: those of Java overflow the stack with
  * values of some thousand characters.
  */
private[headgate] object SqlValues {

  /** The values of a row that begins behind its bracket, without quotes. */
  def split(row: String): Seq[String] = {
    val values = mutable.ArrayBuffer.empty[String]
    var at = 0
    while (at < row.length) {
      if (row.startsWith("x'", at)) at += 1
      val value = new java.lang.StringBuilder
      at = if (row.charAt(at) == '\'') quoted(row, at + 1, value) else plain(row, at, value)
      values += value.toString
      at += 1 // the comma, or the bracket
    }
    values.toSeq
  }

  /** Where the value ends, behind its quote. */
  private def quoted(row: String, from: Int, to: java.lang.StringBuilder): Int = {
    var at = from
    while (at < row.length && row.charAt(at) != '\'') {
      if (row.charAt(at) == '\\') at += 1
      to.append(row.charAt(at))
      at += 1
    }
    at + 1
  }

  private def plain(row: String, from: Int, to: java.lang.StringBuilder): Int = {
    val end = row.indexWhere(c => c == ',' || c == ')', from)
    to.append(row, from, if (end < 0) row.length else end)
    if (end < 0) row.length else end
  }
}
