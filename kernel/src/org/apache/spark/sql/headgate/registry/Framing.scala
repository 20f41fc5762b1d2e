/** Owns the bytes that stand before a value whose schema is in a registry. */
package org.apache.spark.sql.headgate.registry

import java.nio.ByteBuffer

import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Confluent's framing: a zero, then the schema's id in four bytes. */
object Framing {
  val Bytes = 5

  /** Why a value has no such bytes; null if it has. */
  def misfit(value: UTF8String): String =
    if (value.numBytes < Bytes) {
      s"not in Confluent's framing: ${value.numBytes} bytes are less than its $Bytes"
    } else if (value.getByte(0) != 0) {
      f"not in Confluent's framing: the first byte is 0x${value.getByte(0)}%02x, not 0x00"
    } else null

  def id(value: UTF8String): Int = {
    val native = Platform.getInt(value.getBaseObject, value.getBaseOffset + 1)
    if (java.nio.ByteOrder.nativeOrder == java.nio.ByteOrder.BIG_ENDIAN) native
    else Integer.reverseBytes(native)
  }

  /** What follows, in place. */
  def body(value: UTF8String): UTF8String = UTF8String.fromAddress(
    value.getBaseObject, value.getBaseOffset + Bytes, value.numBytes - Bytes)

  /** The bytes for an id. */
  def of(id: Int): Array[Byte] = ByteBuffer.allocate(Bytes).put(0.toByte).putInt(id).array
}
