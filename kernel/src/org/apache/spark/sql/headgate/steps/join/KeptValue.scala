package org.apache.spark.sql.headgate.steps.join

import java.util.Arrays

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeRow}
import org.apache.spark.unsafe.Platform

/** Makes the values of [[JoinStores]]; one is good until the next is made. */
private[join] final class KeptValue {
  import KeptValue._

  private var bytes = new Array[Byte](1 << 12)
  private val row = new UnsafeRow(JoinStores.Columns)
  private val none = new TimedRows

  def ofBlock(side: Int, rows: TimedRows, count: Int): UnsafeRow = {
    val (left, right) = if (side == JoinSpec.Left) (rows, none) else (none, rows)
    val size = Fixed.toLong + left.arraySize(math.min(count, left.size)) + right.arraySize(math.min(count, right.size))
    begin(size)
    val end = array(JoinSpec.Right, right, math.min(count, right.size),
      array(JoinSpec.Left, left, math.min(count, left.size), Fixed))
    row.pointTo(bytes, end)
    row.setNullAt(JoinStores.Blocks)
    row.setNullAt(JoinStores.DueAt)
    row
  }

  def ofHead(rows: Array[TimedRows], blocks: mutable.ArrayBuffer[Block], due: Long): UnsafeRow = {
    val Array(left, right) = rows
    val ofBlocks = UnsafeArrayData.calculateHeaderPortionInBytes(blocks.length) + BlockBytes * blocks.length
    begin(Fixed.toLong + left.arraySize(left.size) + right.arraySize(right.size) + ofBlocks)
    val start = array(JoinSpec.Right, right, right.size, array(JoinSpec.Left, left, left.size, Fixed))
    word(JoinStores.Blocks, start, ofBlocks)
    write(blocks, Platform.BYTE_ARRAY_OFFSET + start)
    row.pointTo(bytes, start + ofBlocks)
    if (due == KeptRows.Never) row.setNullAt(JoinStores.DueAt) else row.setLong(JoinStores.DueAt, due)
    row
  }

  private def begin(size: Long): Unit = {
    val wanted = TimedRows.checked(size)
    if (wanted > bytes.length) bytes = new Array[Byte](TimedRows.grown(bytes.length, wanted))
    else Arrays.fill(bytes, 0, wanted, 0.toByte)
  }

  private def word(column: Int, start: Int, size: Int): Unit =
    Platform.putLong(bytes, Platform.BYTE_ARRAY_OFFSET + 8L + 8L * column, (start.toLong << 32) | size)

  private def array(side: Int, rows: TimedRows, count: Int, start: Int): Int = {
    val size = rows.arraySize(count)
    word(side, start, size)
    rows.writeArray(count, bytes, Platform.BYTE_ARRAY_OFFSET + start)
    start + size
  }

  private def write(blocks: mutable.ArrayBuffer[Block], offset: Long): Unit = {
    val header = UnsafeArrayData.calculateHeaderPortionInBytes(blocks.length)
    Platform.putLong(bytes, offset, blocks.length)
    var n = 0
    while (n < blocks.length) {
      val block = blocks(n)
      val place = header + 8L * blocks.length + (BlockBytes - 8L) * n
      Platform.putLong(bytes, offset + header + 8L * n, (place << 32) | (BlockBytes - 8))
      val at = offset + place
      Platform.putLong(bytes, at + 8, block.side)
      Platform.putLong(bytes, at + 16, block.number)
      Platform.putLong(bytes, at + 24, block.first)
      Platform.putLong(bytes, at + 32, block.last)
      Platform.putLong(bytes, at + 40, block.rows)
      n += 1
    }
  }
}

private[join] object KeptValue {
  private val Fixed = 8 + 8 * JoinStores.Columns
  /** What a head has of a block: a word in the array, and a struct of five columns. */
  val BlockBytes: Int = 8 + 8 + 5 * 8

  def readBlocks(head: UnsafeRow, to: mutable.ArrayBuffer[Block]): Unit = if (!head.isNullAt(JoinStores.Blocks)) {
    val blocks = head.getArray(JoinStores.Blocks)
    (0 until blocks.numElements()).foreach { n =>
      val block = blocks.getStruct(n, 5)
      to += new Block(block.getByte(0), block.getInt(1), block.getLong(2), block.getLong(3), block.getInt(4))
    }
  }
}
