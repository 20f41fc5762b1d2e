package org.apache.spark.sql.headgate.store

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/** A row of state as plain bytes for a shuffle: store number, length of the key, key, value. */
final class StoredRow(val bytes: Array[Byte]) extends AnyVal {
  import StoredRow._
  private def at(offset: Int): Long = Platform.BYTE_ARRAY_OFFSET + offset
  private def keyLength: Int = Platform.getInt(bytes, at(4))

  def store: Int = Platform.getInt(bytes, at(0))
  def keyInto(row: UnsafeRow): Unit = row.pointTo(bytes, at(Header), keyLength)
  def valueInto(row: UnsafeRow): Unit =
    row.pointTo(bytes, at(Header + keyLength), bytes.length - Header - keyLength)
}

object StoredRow {
  private val Header = 8

  def of(store: Int, key: UnsafeRow, value: UnsafeRow): StoredRow = {
    val bytes = new Array[Byte](Header + key.getSizeInBytes + value.getSizeInBytes)
    Platform.putInt(bytes, Platform.BYTE_ARRAY_OFFSET, store)
    Platform.putInt(bytes, Platform.BYTE_ARRAY_OFFSET + 4, key.getSizeInBytes)
    key.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + Header)
    value.writeToMemory(bytes, Platform.BYTE_ARRAY_OFFSET + Header + key.getSizeInBytes)
    new StoredRow(bytes)
  }
}
