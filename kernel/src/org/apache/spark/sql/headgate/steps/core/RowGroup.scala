package org.apache.spark.sql.headgate.steps.core

import java.util.Arrays

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/** Some rows of [[KeySort]], copied into bytes that serve for the next ones again. */
private[headgate] final class RowGroup(fields: Int) {
  private var held = new Array[Byte](1 << 12)
  private var starts = new Array[Int](16) // of each row, and where the next one goes
  private var count = 0
  private var ordered = true
  private var manyKeys = false
  private var arranged: Array[UnsafeRow] = null
  private var at = 0
  private val row = new UnsafeRow(fields)
  private val before = new UnsafeRow(fields)

  def bytes: Int = starts(count)
  def ofManyKeys: Boolean = manyKeys
  def taken: Int = at

  def clear(): Unit = { count = 0; at = 0; ordered = true; manyKeys = false; arranged = null }

  /** Copies a row, and notes whether it belongs behind the one before. */
  def add(next: UnsafeRow, order: Ordering[InternalRow]): Unit = {
    val size = next.getSizeInBytes
    val start = starts(count)
    if (start + size > held.length) held = Arrays.copyOf(held, math.max(held.length * 2, start + size))
    if (count + 2 > starts.length) starts = Arrays.copyOf(starts, starts.length * 2)
    if (ordered && count > 0) ordered = order.compare(point(before, count - 1), next) <= 0
    Platform.copyMemory(next.getBaseObject, next.getBaseOffset, held, Platform.BYTE_ARRAY_OFFSET + start, size)
    count += 1
    starts(count) = start + size
  }

  /** Called when all are there. */
  def arrange(several: Boolean, order: => Ordering[InternalRow]): Unit = {
    manyKeys = several
    if (several || !ordered) {
      arranged = Array.tabulate(count)(n => point(new UnsafeRow(fields), n))
      Arrays.sort(arranged, order.asInstanceOf[Ordering[UnsafeRow]])
    }
  }

  def hasNext: Boolean = at < count

  /** A row; good until the group is cleared or the next one is taken. */
  def next(): UnsafeRow = {
    at += 1
    if (arranged != null) arranged(at - 1) else point(row, at - 1)
  }

  private def point(to: UnsafeRow, number: Int): UnsafeRow = {
    to.pointTo(held, Platform.BYTE_ARRAY_OFFSET + starts(number), starts(number + 1) - starts(number))
    to
  }
}
