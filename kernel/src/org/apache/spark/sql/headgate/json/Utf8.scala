/** Owns what is known about bytes of text: whether they are valid UTF-8, whether they are plain. */
package org.apache.spark.sql.headgate.json

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

object Utf8 {
  private final val HighBits = 0x8080808080808080L

  /** Length of the well-formed multi-byte sequence that starts at `i`, or 0 if there is none.
    *
    * Overlong forms, surrogates and code points above U+10FFFF are not well formed: Java's decoder
    * replaces them, so text that holds them does not survive a trip through `String` unchanged.
    */
  def sequence(b: Array[Byte], i: Int, end: Int): Int = {
    val c = b(i) & 0xff
    if (c < 0xc2) 0
    else if (c < 0xe0) {
      if (continues(b, i + 1, end)) 2 else 0
    } else if (c < 0xf0) {
      if (!continues(b, i + 1, end) || !continues(b, i + 2, end)) 0
      else {
        val second = b(i + 1) & 0xff
        if ((c == 0xe0 && second < 0xa0) || (c == 0xed && second >= 0xa0)) 0 else 3
      }
    } else if (c < 0xf5) {
      if (!continues(b, i + 1, end) || !continues(b, i + 2, end) || !continues(b, i + 3, end)) 0
      else {
        val second = b(i + 1) & 0xff
        if ((c == 0xf0 && second < 0x90) || (c == 0xf4 && second >= 0x90)) 0 else 4
      }
    } else 0
  }

  /** Whether bytes that are taken for a text are one. */
  def isValid(text: UTF8String): Boolean = text.getBaseObject match {
    case b: Array[Byte] =>
      val from = (text.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt
      isValid(b, from, from + text.numBytes)
    case _ => isValid(text.getBytes, 0, text.numBytes)
  }

  /** Whether `b[from, end)` is valid UTF-8 as a whole. */
  def isValid(b: Array[Byte], from: Int, end: Int): Boolean = {
    var i = from
    // Mostly it is ASCII, which eight bytes at a time tell.
    while (i + 8 <= end && (Platform.getLong(b, Platform.BYTE_ARRAY_OFFSET + i) & HighBits) == 0) {
      i += 8
    }
    while (i < end) {
      if (b(i) >= 0) i += 1
      else {
        val n = sequence(b, i, end)
        if (n == 0) return false
        i += n
      }
    }
    true
  }

  /** Whether eight bytes are all ASCII, with no control character, quote or backslash among them.
    *
    * Each term has a byte's high bit set if some byte is below a space, a quote, or a backslash.
    */
  def isPlain(b: Array[Byte], from: Int): Boolean = {
    val eight = Platform.getLong(b, Platform.BYTE_ARRAY_OFFSET + from)
    val quotes = eight ^ 0x2222222222222222L
    val escapes = eight ^ 0x5c5c5c5c5c5c5c5cL
    val special = (eight - 0x2020202020202020L) |
      ((quotes - 0x0101010101010101L) & ~quotes) | ((escapes - 0x0101010101010101L) & ~escapes)
    ((eight | special) & HighBits) == 0
  }

  private def continues(b: Array[Byte], i: Int, end: Int): Boolean =
    i < end && (b(i) & 0xc0) == 0x80
}
