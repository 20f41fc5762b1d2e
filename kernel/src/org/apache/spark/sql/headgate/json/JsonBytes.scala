/** Owns the growable byte buffer that JSON is written into, one kind of value a method. */
package org.apache.spark.sql.headgate.json

import java.io.OutputStream
import java.nio.charset.StandardCharsets.{ISO_8859_1, UTF_8}

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Bytes that grow; every `append` writes what Jackson's generator would write for the value. */
final class JsonBytes(initial: Int = 1 << 16) {
  import JsonBytes._

  private var buf = new Array[Byte](initial)
  private var pos = 0

  def length: Int = pos
  def array: Array[Byte] = buf
  def clear(): Unit = pos = 0

  /** Forgets what was appended after `length` was `to`. */
  def truncate(to: Int): Unit = pos = to

  def toUtf8String: UTF8String = UTF8String.fromBytes(java.util.Arrays.copyOf(buf, pos))

  /** Moves everything to `out`. */
  def drainTo(out: OutputStream): Unit = {
    out.write(buf, 0, pos)
    pos = 0
  }

  def byte(b: Int): Unit = {
    if (pos == buf.length) reserve(1)
    buf(pos) = b.toByte
    pos += 1
  }

  def raw(bytes: Array[Byte], from: Int, count: Int): Unit = {
    reserve(count)
    System.arraycopy(bytes, from, buf, pos, count)
    pos += count
  }

  def raw(bytes: Array[Byte]): Unit = raw(bytes, 0, bytes.length)

  def appendBoolean(v: Boolean): Unit = raw(if (v) True else False)

  def appendNull(): Unit = raw(Null)

  def appendLong(v: Long): Unit =
    if (v == Long.MinValue) ascii(v.toString)
    else {
      reserve(20)
      var rest = v
      if (v < 0) {
        buf(pos) = '-'
        pos += 1
        rest = -v
      }
      digits(rest)
    }

  /** As `Double.toString`, with the values that are not numbers in quotes. */
  def appendDouble(v: Double): Unit = {
    val size = math.abs(v)
    // Prices and the like, at most two decimals: below 10^7 the shortest text of such a double is
    // that decimal, on every JDK (checked for all 10^9 of them against JDK 17).
    val cents = (size * 100 + 0.5).toLong
    if (size < 1e7 && cents / 100.0 == size && cents != 0) {
      reserve(20)
      if (v < 0) {
        buf(pos) = '-'
        pos += 1
      }
      val fraction = (cents % 100).toInt
      digits(cents / 100)
      buf(pos) = '.'
      buf(pos + 1) = ('0' + fraction / 10).toByte
      pos += 2
      if (fraction % 10 != 0) {
        buf(pos) = ('0' + fraction % 10).toByte
        pos += 1
      }
    } else if (java.lang.Double.isFinite(v)) ascii(java.lang.Double.toString(v))
    else quoted(java.lang.Double.toString(v))
  }

  def appendFloat(v: Float): Unit =
    if (java.lang.Float.isFinite(v)) ascii(java.lang.Float.toString(v))
    else quoted(java.lang.Float.toString(v))

  /** A string in quotes, escaped as Jackson does; bad UTF-8 is replaced as Java replaces it. */
  def appendString(s: UTF8String): Unit = {
    val count = s.numBytes
    s.getBaseObject match {
      case bytes: Array[Byte] =>
        val from = (s.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt
        appendString(bytes, from, from + count)
      case _ => appendString(s.getBytes, 0, count)
    }
  }

  private def appendString(bytes: Array[Byte], from: Int, end: Int): Unit = {
    // One pass that only looks, then one copy: few strings hold anything to escape.
    var i = from
    var multibyte = false
    var plain = true
    while (i + 8 <= end && Utf8.isPlain(bytes, i)) i += 8
    while (i < end && plain) {
      val c = bytes(i)
      if (c < 0) multibyte = true
      else if (c < 0x20 || c == '"' || c == '\\') plain = false
      i += 1
    }
    if ((multibyte || !plain) && !Utf8.isValid(bytes, from, end)) {
      val repaired = new String(bytes, from, end - from, UTF_8).getBytes(UTF_8)
      appendString(repaired, 0, repaired.length)
    } else if (plain) {
      val count = end - from
      reserve(count + 2)
      buf(pos) = '"'
      System.arraycopy(bytes, from, buf, pos + 1, count)
      pos += count + 1
      buf(pos) = '"'
      pos += 1
    } else escaped(bytes, from, end)
  }

  private def escaped(bytes: Array[Byte], from: Int, end: Int): Unit = {
    reserve((end - from) * 6 + 2)
    buf(pos) = '"'
    pos += 1
    var i = from
    while (i < end) {
      val c = bytes(i)
      if (c < 0 || (c >= 0x20 && c != '"' && c != '\\')) {
        buf(pos) = c
        pos += 1
      } else {
        val e = Escapes(c)
        System.arraycopy(e, 0, buf, pos, e.length)
        pos += e.length
      }
      i += 1
    }
    buf(pos) = '"'
    pos += 1
  }

  /** A number from 0 on, two digits at a time; 20 bytes are reserved. */
  private def digits(v: Long): Unit = {
    val to = buf
    val pairs = Pairs
    val count = JsonBytes.digits(v)
    var p = pos + count
    var rest = v
    while (rest >= 100) {
      val q = rest / 100
      val pair = (rest - q * 100).toInt * 2
      p -= 2
      to(p) = pairs(pair)
      to(p + 1) = pairs(pair + 1)
      rest = q
    }
    if (rest >= 10) {
      to(p - 2) = pairs(rest.toInt * 2)
      to(p - 1) = pairs(rest.toInt * 2 + 1)
    } else to(p - 1) = ('0' + rest).toByte
    pos += count
  }

  private def quoted(s: String): Unit = {
    byte('"')
    ascii(s)
    byte('"')
  }

  private def ascii(s: String): Unit = {
    val bytes = s.getBytes(ISO_8859_1)
    raw(bytes, 0, bytes.length)
  }

  private def reserve(count: Int): Unit =
    if (buf.length - pos < count) {
      val wanted = pos.toLong + count
      if (wanted > MaxSize) throw new IllegalStateException(s"a record of more than $MaxSize bytes")
      buf = java.util.Arrays.copyOf(buf, math.min(math.max(buf.length * 2L, wanted), MaxSize).toInt)
    }
}

object JsonBytes {
  private val MaxSize = Int.MaxValue - 16L
  private val True = "true".getBytes(ISO_8859_1)
  private val False = "false".getBytes(ISO_8859_1)
  private val Null = "null".getBytes(ISO_8859_1)

  /** "00", "01", ... "99" in one row. */
  private val Pairs =
    Array.tabulate(200)(i => ('0' + (if (i % 2 == 0) i / 20 else i / 2 % 10)).toByte)
  private val Tens = Array.iterate(1L, 19)(_ * 10)

  /** How many decimal digits a number from 0 on has: a guess from its bits, then one comparison. */
  private def digits(v: Long): Int = {
    val guess = ((64 - java.lang.Long.numberOfLeadingZeros(v | 1)) * 1233) >>> 12
    if (guess < 19 && v >= Tens(guess)) guess + 1 else math.max(guess, 1)
  }

  /** What Jackson writes for each ASCII character that it escapes. */
  private val Escapes: Array[Array[Byte]] = Array.tabulate(128) { c =>
    val text = c.toChar match {
      case '"' => "\\\""
      case '\\' => "\\\\"
      case '\b' => "\\b"
      case '\t' => "\\t"
      case '\n' => "\\n"
      case '\f' => "\\f"
      case '\r' => "\\r"
      case _ => f"\\u$c%04X"
    }
    text.getBytes(ISO_8859_1)
  }
}
