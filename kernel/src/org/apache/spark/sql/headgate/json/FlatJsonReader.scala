/** Owns the fast way in: a flat JSON object from UTF-8 bytes into the columns of an UnsafeRow. */
package org.apache.spark.sql.headgate.json

import java.nio.charset.StandardCharsets.{US_ASCII, UTF_8}

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.catalyst.util.ResolveDefaultColumnsUtils.EXISTS_DEFAULT_COLUMN_METADATA_KEY
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Reads plain records fast and answers "don't know" to everything else.
  *
  * It is an optimisation of Spark's JacksonParser with default options and must be sound: when
  * [[read]] says true, the columns hold exactly what JacksonParser gives. It is free to say false
  * to any record, for JacksonParser then decides; so every rule below errs towards false.
  *
  * One instance serves one task: it keeps its cursor in fields.
  */
final class FlatJsonReader(schema: StructType) {
  import FlatJsonReader._

  private val columns = schema.length
  private val names = schema.fieldNames.map(_.getBytes(UTF_8))
  // Names that hold nothing to escape, so that equal bytes are an equal name.
  private val plain = names.map(n => !n.exists(c => c == '"' || c == '\\' || (c >= 0 && c < 0x20)))
  private val kinds = schema.fields.map(f => kindOf(f.dataType))

  // Which record last filled a column: a key that comes twice is noticed without clearing a set.
  private val filledIn = new Array[Int](columns)
  private var record = 0

  // Names by hash, for keys that do not come in the schema's order.
  private val mask = Integer.highestOneBit(math.max(columns, 1) * 4) - 1
  private val first = Array.fill(mask + 1)(-1)
  private val another = Array.fill(columns)(-1)
  (columns - 1 to 0 by -1).foreach { c =>
    val h = hash(names(c), 0, names(c).length)
    another(c) = first(h)
    first(h) = c
  }

  private var b: Array[Byte] = _
  private var i = 0
  private var end = 0

  /** Writes columns 0 until n of `out`, whose buffer was reset and whose null bits are clear.
    * After false the contents of `out` are of no use.
    */
  def read(text: UTF8String, out: UnsafeRowWriter): Boolean = {
    if (text.numBytes > MaxBytes) return false
    text.getBaseObject match {
      case bytes: Array[Byte] =>
        b = bytes
        i = (text.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt
        end = i + text.numBytes
      case _ =>
        b = text.getBytes
        i = 0
        end = b.length
    }
    if (record == Int.MaxValue) {
      java.util.Arrays.fill(filledIn, 0)
      record = 0
    }
    record += 1
    members(out)
  }

  private def members(out: UnsafeRowWriter): Boolean = {
    var filled = 0
    var expected = 0
    if (!next('{')) return false
    skipSpace()
    if (i < end && b(i) == '}') {
      i += 1
    } else {
      var more = true
      while (more) {
        skipSpace()
        if (i >= end || b(i) != '"') return false
        i += 1
        val c = name(expected)
        if (c == Unknown || !next(':')) return false
        skipSpace()
        if (i >= end) return false
        if (c >= 0) {
          if (filledIn(c) == record) return false
          filledIn(c) = record
          filled += 1
          expected = c + 1
        }
        if (!value(c, out)) return false
        skipSpace()
        if (i >= end) return false
        val separator = b(i)
        i += 1
        if (separator == '}') more = false
        else if (separator != ',') return false
      }
    }
    skipSpace()
    if (i != end) return false
    if (filled < columns) {
      var c = 0
      while (c < columns) {
        if (filledIn(c) != record) out.setNullAt(c)
        c += 1
      }
    }
    true
  }

  /** The column whose name stands at the cursor, -1 if none has it, Unknown if it is not plain. */
  private def name(expected: Int): Int = {
    val from = i
    if (expected < columns) {
      // Mostly the next column's name comes, and then one comparison says so.
      val to = from + names(expected).length
      if (plain(expected) && to < end && b(to) == '"' && isName(expected, from, to - from)) {
        i = to + 1
        return expected
      }
    }
    if (!skipString()) return Unknown
    val length = i - 1 - from
    if (length > MaxName) Unknown else columnOf(from, length)
  }

  /** One value at the cursor, into column `c`, or nowhere if `c` is negative. */
  private def value(c: Int, out: UnsafeRowWriter): Boolean = {
    val start = b(i)
    if (start == '"') {
      i += 1
      val from = i
      if (!skipString()) return false
      if (c >= 0) {
        if (kinds(c) != KString) return false
        out.write(c, b, from, i - 1 - from)
      }
      true
    } else if (start == '-' || (start >= '0' && start <= '9')) number(c, out)
    else if (start == 'n') {
      if (!literal(Null)) return false
      if (c >= 0) out.setNullAt(c)
      true
    } else if (start == 't' || start == 'f') {
      if (!literal(if (start == 't') True else False)) return false
      if (c >= 0) {
        if (kinds(c) != KBoolean) return false
        out.write(c, start == 't')
      }
      true
    } else false
  }

  private def number(c: Int, out: UnsafeRowWriter): Boolean = {
    // The cursor in a local: the loops below are the hottest ones of all.
    val bytes = b
    val stop = end
    val from = i
    var p = from
    val negative = bytes(p) == '-'
    if (negative) p += 1
    val digitsFrom = p
    var m = 0L
    while (p < stop && bytes(p) >= '0' && bytes(p) <= '9') {
      m = m * 10 + (bytes(p) - '0')
      p += 1
    }
    val whole = p - digitsFrom
    if (whole == 0 || whole > MaxDigits || (whole > 1 && bytes(digitsFrom) == '0')) return false
    var fraction = 0
    if (p < stop && bytes(p) == '.') {
      p += 1
      val fractionFrom = p
      while (p < stop && bytes(p) >= '0' && bytes(p) <= '9') {
        m = m * 10 + (bytes(p) - '0')
        p += 1
      }
      fraction = p - fractionFrom
      if (fraction == 0 || fraction > MaxFraction) return false
    }
    i = p
    if (c < 0) return true
    val kind = kinds(c)
    if (fraction == 0) {
      // Negated as a long: an integer -0 is 0.0 to Jackson, whereas -0.0 keeps its sign.
      val v = if (negative) -m else m
      (kind: @annotation.switch) match {
        case KLong => out.write(c, v)
        case KInt => if (v.toInt != v) return false else out.write(c, v.toInt)
        case KShort => if (v.toShort != v) return false else out.write(c, v.toShort)
        case KByte => if (v.toByte != v) return false else out.write(c, v.toByte)
        case KDouble => out.write(c, v.toDouble)
        case KFloat => out.write(c, v.toFloat)
        case _ => return false
      }
    } else if (kind == KDouble) {
      // m and 10^k are exact doubles here, so one division rounds once, as a parser must.
      val exact = whole + fraction <= MaxDigits && m < ExactDouble && fraction <= 22
      if (exact) {
        val v = m.toDouble / powers(fraction)
        out.write(c, if (negative) -v else v)
      } else out.write(c, java.lang.Double.parseDouble(new String(bytes, from, p - from, US_ASCII)))
    } else if (kind == KFloat) {
      out.write(c, java.lang.Float.parseFloat(new String(bytes, from, p - from, US_ASCII)))
    } else return false
    true
  }

  /** Moves behind the closing quote; false for an escape, a control character or bad UTF-8. */
  private def skipString(): Boolean = {
    val bytes = b
    val stop = end
    var p = i
    while (p + 8 <= stop && Utf8.isPlain(bytes, p)) p += 8
    while (p < stop) {
      val c = bytes(p)
      if (c == '"') {
        i = p + 1
        return true
      }
      if (c >= 0x20) {
        if (c == '\\') return false
        p += 1
      } else {
        if (c >= 0) return false
        val n = Utf8.sequence(bytes, p, stop)
        if (n == 0) return false
        p += n
      }
    }
    false
  }

  private def literal(word: Array[Byte]): Boolean = {
    val to = i + word.length
    if (to > end || !java.util.Arrays.equals(word, 0, word.length, b, i, to)) return false
    i = to
    true
  }

  private def next(c: Char): Boolean = {
    skipSpace()
    if (i < end && b(i) == c) {
      i += 1
      true
    } else false
  }

  private def skipSpace(): Unit =
    while (i < end && (b(i) == ' ' || b(i) == '\t' || b(i) == '\n' || b(i) == '\r')) i += 1

  private def isName(c: Int, from: Int, length: Int): Boolean = {
    val name = names(c)
    name.length == length && java.util.Arrays.equals(name, 0, length, b, from, from + length)
  }

  private def columnOf(from: Int, length: Int): Int = {
    var c = first(hash(b, from, length))
    while (c >= 0 && !isName(c, from, length)) c = another(c)
    c
  }

  private def hash(bytes: Array[Byte], from: Int, length: Int): Int =
    if (length == 0) 0
    else {
      val head = bytes(from)
      val middle = bytes(from + length / 2)
      val last = bytes(from + length - 1)
      (length * 31 + head * 7 + middle + last * 13) & mask
    }
}

object FlatJsonReader {
  private final val KOther = 0
  private final val KLong = 1
  private final val KInt = 2
  private final val KShort = 3
  private final val KByte = 4
  private final val KDouble = 5
  private final val KFloat = 6
  private final val KBoolean = 7
  private final val KString = 8

  // Below Jackson's own limits for a document, a name and a number, whatever they become.
  private final val MaxBytes = 1 << 20
  private final val MaxName = 1000
  private final val MaxDigits = 18
  private final val MaxFraction = 100
  private final val ExactDouble = 1L << 53

  // The answer for a name that the reader leaves to Jackson.
  private final val Unknown = -2

  private val True = "true".getBytes(US_ASCII)
  private val False = "false".getBytes(US_ASCII)
  private val Null = "null".getBytes(US_ASCII)
  private val powers = Array.tabulate(23)(k => java.lang.Double.parseDouble("1e" + k))

  private def kindOf(t: DataType): Int = t match {
    case LongType => KLong
    case IntegerType => KInt
    case ShortType => KShort
    case ByteType => KByte
    case DoubleType => KDouble
    case FloatType => KFloat
    case BooleanType => KBoolean
    case _: StringType => KString
    case _ => KOther
  }

  /** Whether the reader may be used for the schema at all. */
  def supports(schema: StructType): Boolean =
    schema.fieldNames.distinct.length == schema.length &&
      !schema.fields.exists(_.metadata.contains(EXISTS_DEFAULT_COLUMN_METADATA_KEY))

  /** Whether every column is of a kind that the reader fills by itself. */
  def isFlat(schema: StructType): Boolean =
    supports(schema) && schema.fields.forall(f => kindOf(f.dataType) != KOther)
}
