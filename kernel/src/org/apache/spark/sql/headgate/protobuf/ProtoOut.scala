/** Owns writing Protobuf's wire form. */
package org.apache.spark.sql.headgate.protobuf

/** The bytes of a message under way. */
private[headgate] final class ProtoOut {
  private var b = new Array[Byte](1 << 10)
  private var n = 0

  def clear(): Unit = n = 0

  def result: Array[Byte] = java.util.Arrays.copyOf(b, n)

  def tag(number: Int, wire: Int): Unit = varint((number.toLong << 3) | wire)

  def varint(value: Long): Unit = {
    var v = value
    while ((v & ~0x7fL) != 0) {
      byte((v & 0x7f | 0x80).toInt)
      v >>>= 7
    }
    byte(v.toInt)
  }

  /** A number whose sign stands in its lowest bit. */
  def zigzag(v: Long): Unit = varint((v << 1) ^ (v >> 63))

  def fixed32(v: Int): Unit = {
    var i = 0
    while (i < 32) {
      byte(v >>> i)
      i += 8
    }
  }

  def fixed64(v: Long): Unit = {
    fixed32(v.toInt)
    fixed32((v >>> 32).toInt)
  }

  def raw(bytes: Array[Byte]): Unit = {
    room(bytes.length)
    System.arraycopy(bytes, 0, b, n, bytes.length)
    n += bytes.length
  }

  def bytes(bytes: Array[Byte]): Unit = {
    varint(bytes.length)
    raw(bytes)
  }

  /** What `write` writes, with its length in front. */
  def limited(write: => Unit): Unit = {
    val start = n
    write
    val size = n - start
    val head = (70 - java.lang.Long.numberOfLeadingZeros(size | 1L)) / 7
    room(head)
    System.arraycopy(b, start, b, start + head, size)
    n = start
    varint(size)
    n += size
  }

  /** A field whose value `write` writes; none if the bytes of the value are all zero. */
  def unlessZero(number: Int, wire: Int)(write: => Unit): Unit = {
    val start = n
    tag(number, wire)
    val value = n
    write
    var i = value
    while (i < n && b(i) == 0) i += 1
    if (i == n) n = start
  }

  private def byte(v: Int): Unit = {
    room(1)
    b(n) = v.toByte
    n += 1
  }

  private def room(count: Int): Unit =
    if (b.length - n < count) b = java.util.Arrays.copyOf(b, Math.max(2 * b.length, n + count))
}
