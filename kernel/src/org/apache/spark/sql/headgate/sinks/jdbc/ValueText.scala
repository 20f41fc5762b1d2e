/** Owns values as the text that every database reads: numbers, days, times, JSON. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}
import java.time.LocalDate

import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, SpecializedGetters}
import org.apache.spark.sql.headgate.json.{JsonBytes, JsonRowWriter}
import org.apache.spark.sql.types._

private[headgate] object ValueText {
  private val SecondMicros = 1000000L
  val DayMicros: Long = 86400L * SecondMicros

  abstract class Value {
    def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit

    /** Whether it must stand in quotes in an array. */
    def quoted: Boolean = false
  }

  /** Numbers that are written as they are: whole ones and decimals. */
  def exact(dataType: DataType): Value = dataType match {
    case ByteType => (row, i, out) => out.appendLong(row.getByte(i))
    case ShortType => (row, i, out) => out.appendLong(row.getShort(i))
    case IntegerType => (row, i, out) => out.appendLong(row.getInt(i))
    case LongType => (row, i, out) => out.appendLong(row.getLong(i))
    case d: DecimalType if d.precision <= Decimal.MAX_LONG_DIGITS => new ShortDecimal(d)
    case d: DecimalType => (row, i, out) =>
      ascii(row.getDecimal(i, d.precision, d.scale).toJavaBigDecimal.toPlainString, out)
    case other => throw new IllegalArgumentException(s"${other.sql} is no exact number")
  }

  def ascii(text: String, out: JsonBytes): Unit = out.raw(text.getBytes(ISO_8859_1))

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

  /** Days as databases read them, in any of their styles. */
  final class Days {
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

  /** The time of a day, with a fraction of the second if there is one. */
  def clock(micros: Long, out: JsonBytes): Unit = {
    val seconds = (micros / SecondMicros).toInt
    pair(seconds / 3600, out)
    out.byte(':')
    pair(seconds / 60 % 60, out)
    out.byte(':')
    pair(seconds % 60, out)
    fraction((micros % SecondMicros).toInt, out)
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

  /** A value as the only field of an object; the object around it is cut off.
    *
    * @param escape writes a part of an array as the database reads text
    */
  final class JsonValue(dataType: DataType, timeZone: String, escape: (Array[Byte], Int, Int, JsonBytes) => Unit)
    extends Value {
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
