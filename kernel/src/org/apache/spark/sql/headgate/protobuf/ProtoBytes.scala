/** Owns reading Protobuf's wire form from bytes that may be anything. */
package org.apache.spark.sql.headgate.protobuf

import java.nio.charset.StandardCharsets.UTF_8

/** No length is believed before the bytes are there. A part of a message is read in place: `limited` puts
  * its end where the part ends.
  */
private[headgate] final class ProtoBytes(b: Array[Byte], start: Int, until: Int) {
  import ProtoBytes._

  private var i = start
  private var end = until

  def atEnd: Boolean = i >= end

  def varint(): Long = {
    var v = 0L
    var shift = 0
    var more = true
    while (more) {
      if (shift > 63) refuse("a number is too long")
      val c = b(take(1))
      v |= (c & 0x7fL) << shift
      shift += 7
      more = c < 0
    }
    v
  }

  /** A number whose sign stands in its lowest bit. */
  def zigzag(): Long = {
    val v = varint()
    (v >>> 1) ^ -(v & 1)
  }

  def fixed32(): Int = {
    val at = take(4)
    (b(at) & 0xff) | (b(at + 1) & 0xff) << 8 | (b(at + 2) & 0xff) << 16 | (b(at + 3) & 0xff) << 24
  }

  def fixed64(): Long = (fixed32() & 0xffffffffL) | fixed32().toLong << 32

  /** Reads what has its length in front. */
  def limited[T](read: => T): T = {
    val size = length()
    val outer = end
    end = i + size
    val made = read
    if (i != end) refuse("a length does not fit what it is for")
    end = outer
    made
  }

  def bytes(): Array[Byte] = {
    val size = length()
    val from = take(size)
    java.util.Arrays.copyOfRange(b, from, from + size)
  }

  def text(): String = new String(bytes(), UTF_8)

  /** Leaves out the value of a field that nobody wants. */
  def skip(tag: Int, depth: Int = 0): Unit = tag & 7 match {
    case Varint => varint()
    case Fixed64 => take(8)
    case Length => take(length())
    case Fixed32 => take(4)
    case StartGroup if depth < MaxDepth =>
      var inner = this.tag()
      while ((inner & 7) != EndGroup) {
        skip(inner, depth + 1)
        inner = this.tag()
      }
    case _ => refuse("a field has a wire type that does not exist")
  }

  /** The number of the next field, and how its value is written. */
  def tag(): Int = {
    val v = varint()
    if (v >>> 3 == 0 || v > 0xffffffffL) refuse("a field has no number")
    v.toInt
  }

  private def length(): Int = {
    val v = varint()
    if (v < 0 || v > end - i) refuse(TooEarly)
    v.toInt
  }

  private def take(count: Int): Int = {
    if (count > end - i) refuse(TooEarly)
    val from = i
    i += count
    from
  }
}

private[headgate] object ProtoBytes {
  val Varint = 0
  val Fixed64 = 1
  val Length = 2
  val StartGroup = 3
  val EndGroup = 4
  val Fixed32 = 5
  val MaxDepth = 100
  val TooEarly = "it ends too early"

  def refuse(why: String): Nothing = throw new ProtoException(why)
}

/** Why bytes are no message. */
private[headgate] final class ProtoException(why: String) extends RuntimeException(why, null, false, false)
