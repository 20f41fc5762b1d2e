/** Owns reading Avro's binary form from bytes that may be anything. */
package org.apache.spark.sql.headgate.steps.decode

import java.io.{EOFException, IOException}
import java.nio.{ByteBuffer, ByteOrder}

import org.apache.avro.io.Decoder
import org.apache.avro.util.{Utf8 => AvroText}

import org.apache.spark.sql.headgate.json.Utf8
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** A decoder that believes no length before the bytes are there.
  *
  * Avro's own BinaryDecoder allocates what a length says, up to 2 GB, before it looks: one bad
  * record takes the executor's memory. Nor does it look whether a text is UTF-8.
  */
final class AvroBytes extends Decoder {
  private var b: Array[Byte] = Array.emptyByteArray
  private var little: ByteBuffer = _
  private var i = 0
  private var end = 0

  /** From here on the bytes of `value`, in place where they are in an array. */
  def open(value: UTF8String): Unit = {
    value.getBaseObject match {
      case bytes: Array[Byte] =>
        use(bytes)
        i = (value.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt
      case _ =>
        use(value.getBytes)
        i = 0
    }
    end = i + value.numBytes
  }

  /** Bytes that were not read. */
  def left: Int = end - i

  override def readNull(): Unit = ()

  override def readBoolean(): Boolean = {
    val v = b(take(1))
    if (v != 0 && v != 1) throw new IOException(s"$v is no boolean")
    v == 1
  }

  override def readInt(): Int = {
    val v = readLong()
    if (v.toInt != v) throw new IOException(s"$v is no int")
    v.toInt
  }

  override def readLong(): Long = {
    var v = 0L
    var shift = 0
    var more = true
    while (more) {
      val c = b(take(1))
      if (shift == 63 && (c & 0xfe) != 0) throw new IOException("a number is too long")
      v |= (c & 0x7fL) << shift
      shift += 7
      more = c < 0
    }
    (v >>> 1) ^ -(v & 1)
  }

  override def readFloat(): Float = little.getFloat(take(4))
  override def readDouble(): Double = little.getDouble(take(8))

  override def readString(old: AvroText): AvroText = {
    val length = size()
    val from = take(length)
    if (!Utf8.isValid(b, from, from + length)) throw new IOException("a text is not valid UTF-8")
    val text = if (old == null) new AvroText() else old
    text.setByteLength(length)
    System.arraycopy(b, from, text.getBytes, 0, length)
    text
  }

  override def readString(): String = readString(null).toString

  override def readBytes(old: ByteBuffer): ByteBuffer = {
    val length = size()
    val from = take(length)
    ByteBuffer.wrap(java.util.Arrays.copyOfRange(b, from, from + length))
  }

  override def readFixed(bytes: Array[Byte], start: Int, length: Int): Unit =
    System.arraycopy(b, take(length), bytes, start, length)

  override def readEnum(): Int = readInt()
  override def readIndex(): Int = readInt()
  override def readArrayStart(): Long = items()
  override def arrayNext(): Long = items()
  override def readMapStart(): Long = items()
  override def mapNext(): Long = items()

  override def skipString(): Unit = take(size())
  override def skipBytes(): Unit = take(size())
  override def skipFixed(length: Int): Unit = take(length)
  override def skipArray(): Long = skipBlocks()
  override def skipMap(): Long = skipBlocks()

  /** How many items a block of an array or map has. Each takes a byte at least: an array of nothing
    * but nulls, which takes none, is refused if it is longer than what follows it.
    */
  private def items(): Long = {
    val count = readLong()
    val items = if (count < 0) { readLong(); -count } else count
    if (items < 0 || items > left) throw new EOFException
    items
  }

  /** Skips the blocks that tell their size; gives the items of the first one that does not. */
  private def skipBlocks(): Long = {
    var count = readLong()
    while (count < 0) {
      take(size())
      count = readLong()
    }
    if (count > left) throw new EOFException
    count
  }

  private def size(): Int = {
    val v = readLong()
    if (v < 0) throw new IOException("a length is negative")
    if (v > left) throw new EOFException
    v.toInt
  }

  /** Where the next so many bytes are. */
  private def take(count: Int): Int = {
    if (count > end - i) throw new EOFException
    val from = i
    i += count
    from
  }

  private def use(bytes: Array[Byte]): Unit = if (little == null || (bytes ne b)) {
    b = bytes
    little = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
  }
}
