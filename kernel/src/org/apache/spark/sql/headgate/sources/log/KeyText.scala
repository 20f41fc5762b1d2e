/** Owns the text of a key in a keyed segment's line. */
package org.apache.spark.sql.headgate.sources.log

import org.apache.spark.sql.headgate.json.JsonBytes
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** A key stands before the first TAB of its line, with TAB, newline, return and backslash written
  * as `\t`, `\n`, `\r` and `\\`. A record without a key has `\N`, which no key's text can be.
  */
object KeyText {

  /** Appends the key and the TAB; a null key is a record without one. */
  def write(key: UTF8String, out: JsonBytes): Unit = {
    if (key == null) {
      out.byte('\\')
      out.byte('N')
    } else {
      val (bytes, from) = key.getBaseObject match {
        case b: Array[Byte] => (b, (key.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt)
        case _ => (key.getBytes, 0)
      }
      val end = from + key.numBytes
      var i = from
      while (i < end) {
        val c = bytes(i)
        val escape = (c: @annotation.switch) match {
          case '\t' => 't'
          case '\n' => 'n'
          case '\r' => 'r'
          case '\\' => '\\'
          case _ => 0.toChar
        }
        if (escape == 0) out.byte(c)
        else {
          out.byte('\\')
          out.byte(escape)
        }
        i += 1
      }
    }
    out.byte('\t')
  }

  /** The key of escaped text, or null for a record without one. */
  def read(bytes: Array[Byte], from: Int, end: Int): UTF8String = {
    if (end - from == 2 && bytes(from) == '\\' && bytes(from + 1) == 'N') return null
    val out = new Array[Byte](end - from)
    var n = 0
    var i = from
    while (i < end) {
      var c = bytes(i)
      if (c == '\\' && i + 1 < end) {
        i += 1
        c = bytes(i) match {
          case 't' => '\t'.toByte
          case 'n' => '\n'.toByte
          case 'r' => '\r'.toByte
          case other => other
        }
      }
      out(n) = c
      n += 1
      i += 1
    }
    UTF8String.fromBytes(out, 0, n)
  }
}
