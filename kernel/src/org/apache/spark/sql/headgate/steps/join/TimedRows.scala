package org.apache.spark.sql.headgate.steps.join

import java.util.Arrays

import org.apache.spark.sql.catalyst.expressions.{UnsafeArrayData, UnsafeRow}
import org.apache.spark.unsafe.Platform

/**
 * Rows of one key and side, by time and then as they came, in bytes that serve for the next ones again.
 * Each lies there as it does in state: a struct of its time, its number, whether it had a match, and the
 * row. So to keep rows is to copy bytes.
 */
private[join] final class TimedRows {
  import TimedRows._

  private var bytes = new Array[Byte](1 << 12)
  private var used = 0
  private var starts = new Array[Int](16)
  private var times = new Array[Long](16)
  private var first = 0
  private var end = 0
  private var live = 0
  private var ordered = true
  private var noted = false

  def size: Int = end - first
  /** What the rows take. */
  def byteCount: Int = live
  /** Whether a row got its match since they were read. */
  def isNoted: Boolean = noted

  private def at(n: Int): Long = Platform.BYTE_ARRAY_OFFSET + starts(first + n)
  private def sizeOf(n: Int): Int = Fixed + Platform.getLong(bytes, at(n) + RowAt).toInt

  def time(n: Int): Long = times(first + n)
  def isMatched(n: Int): Boolean = Platform.getBoolean(bytes, at(n) + MatchedAt)
  def setMatched(n: Int): Unit = { Platform.putBoolean(bytes, at(n) + MatchedAt, true); noted = true }

  /** Points to a row's columns; good until rows are added. */
  def row(n: Int, to: UnsafeRow): UnsafeRow = {
    val start = at(n)
    val word = Platform.getLong(bytes, start + RowAt)
    to.pointTo(bytes, start + (word >>> 32), word.toInt)
    to
  }

  def clear(): Unit = { used = 0; first = 0; end = 0; live = 0; ordered = true; noted = false }

  /** Takes a row that is the struct in a column of another. */
  def add(time: Long, number: Long, in: UnsafeRow, column: Int): Unit = {
    val word = in.getLong(column)
    val rowSize = word.toInt
    makeRoom(Fixed.toLong + rowSize)
    val start = Platform.BYTE_ARRAY_OFFSET + used
    Platform.putLong(bytes, start, 0L) // no column is null
    Platform.putLong(bytes, start + TimeAt, time)
    Platform.putLong(bytes, start + NumberAt, number)
    Platform.putLong(bytes, start + MatchedAt, 0L)
    Platform.putLong(bytes, start + RowAt, (Fixed.toLong << 32) | rowSize)
    Platform.copyMemory(in.getBaseObject, in.getBaseOffset + (word >>> 32), bytes, start + Fixed, rowSize)
    append(time, Fixed + rowSize)
  }

  /** Takes rows of others, beginning with one of them. */
  def addAll(others: TimedRows, from: Int): Unit = {
    var n = from
    while (n < others.size) {
      val size = others.sizeOf(n)
      take(others.bytes, others.at(n), size, others.time(n))
      n += 1
    }
    arrange()
  }

  /** The rows of an array in state, instead of what is here. */
  def read(base: Object, offset: Long): Unit = {
    clear()
    val count = Platform.getLong(base, offset).toInt
    val header = UnsafeArrayData.calculateHeaderPortionInBytes(count)
    var n = 0
    while (n < count) {
      val word = Platform.getLong(base, offset + header + 8L * n)
      val from = offset + (word >>> 32)
      take(base, from, word.toInt, Platform.getLong(base, from + TimeAt))
      n += 1
    }
  }

  private def take(base: Object, from: Long, size: Int, time: Long): Unit = {
    makeRoom(size) // before `bytes` is named: it may be another array then
    Platform.copyMemory(base, from, bytes, Platform.BYTE_ARRAY_OFFSET + used, size)
    append(time, size)
  }

  private def makeRoom(size: Long): Unit = {
    val wanted = checked(used + size)
    if (wanted > bytes.length) bytes = Arrays.copyOf(bytes, grown(bytes.length, wanted))
  }

  private def append(time: Long, size: Int): Unit = {
    if (end == starts.length) { starts = Arrays.copyOf(starts, end * 2); times = Arrays.copyOf(times, end * 2) }
    if (ordered && end > first && times(end - 1) > time) ordered = false
    starts(end) = used
    times(end) = time
    end += 1
    used += size
    live += size
  }

  /** Called when all are there; rows of the same time stay as they came. */
  def arrange(): Unit = if (!ordered) {
    if (size <= FewRows) insert() else sort()
    ordered = true
  }

  private def insert(): Unit = {
    var n = first + 1
    while (n < end) {
      val (time, start) = (times(n), starts(n))
      var to = n
      while (to > first && times(to - 1) > time) { times(to) = times(to - 1); starts(to) = starts(to - 1); to -= 1 }
      times(to) = time
      starts(to) = start
      n += 1
    }
  }

  private def sort(): Unit = {
    val order = Array.tabulate[Integer](size)(n => Int.box(first + n))
    Arrays.sort(order, (a: Integer, b: Integer) => java.lang.Long.compare(times(a), times(b)))
    val (ofTimes, ofStarts) = (order.map(times(_)), order.map(starts(_)))
    System.arraycopy(ofTimes, 0, times, first, ofTimes.length)
    System.arraycopy(ofStarts, 0, starts, first, ofStarts.length)
  }

  /** The first row with that time or a later one. */
  def firstFrom(time: Long): Int = {
    var low = first
    var high = end
    while (low < high) {
      val middle = (low + high) >>> 1
      if (times(middle) < time) low = middle + 1 else high = middle
    }
    low - first
  }

  /** Without so many of the first. */
  def drop(count: Int): Unit = {
    var n = 0
    while (n < count) { live -= sizeOf(n); n += 1 }
    first += count
    if (used > Worthwhile && used > 2 * live) compact()
  }

  private def compact(): Unit = {
    val others = new TimedRows
    others.addAll(this, 0)
    bytes = others.bytes; used = others.used; starts = others.starts; times = others.times
    first = 0; end = others.end
  }

  /** What an array of the first rows takes. */
  def arraySize(count: Int): Int = {
    var size = UnsafeArrayData.calculateHeaderPortionInBytes(count) + 8L * count
    if (count == this.size) size += live
    else {
      var n = 0
      while (n < count) { size += sizeOf(n); n += 1 }
    }
    checked(size)
  }

  /** Writes the first rows as an array, whose header is zero. */
  def writeArray(count: Int, to: Array[Byte], offset: Long): Unit = {
    val header = UnsafeArrayData.calculateHeaderPortionInBytes(count)
    Platform.putLong(to, offset, count)
    var place = header + 8L * count
    var n = 0
    while (n < count) {
      val size = sizeOf(n)
      Platform.putLong(to, offset + header + 8L * n, (place << 32) | size)
      Platform.copyMemory(bytes, at(n), to, offset + place, size)
      place += size
      n += 1
    }
  }

  /** How many of the first rows take half of all bytes, at least one. */
  def half: Int = {
    var n = 0
    var taken = 0
    while (n == 0 || n < size && taken < live / 2) { taken += sizeOf(n); n += 1 }
    n
  }
}

private[join] object TimedRows {
  private val TimeAt = 8
  private val NumberAt = 16
  private val MatchedAt = 24
  private val RowAt = 32
  private val Fixed = 40
  private val FewRows = 40
  private val Worthwhile = 1 << 16
  private val MaxBytes = Int.MaxValue - 16L

  /** A size that an array of bytes can have. */
  def checked(size: Long): Int = {
    if (size > MaxBytes) throw new IllegalStateException(s"rows of a join that are held at once, a copy for each of a " +
      s"row's windows, must take at most $MaxBytes bytes, got $size: make the rows smaller, or their windows fewer")
    size.toInt
  }

  /** The size of the next array, for one that is too small. */
  def grown(size: Int, wanted: Int): Int = math.min(math.max(size * 2L, wanted), MaxBytes).toInt
}
