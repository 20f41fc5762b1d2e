package org.apache.spark.sql.headgate.steps.join

import java.util.Arrays

import org.apache.spark.sql.catalyst.expressions.UnsafeRow

/** A row that came in this batch; a row of overlapping windows is there once for each. */
private[join] final class FreshRow(val row: UnsafeRow, val time: Long, val number: Long) {
  var matched = false
}

/** Rows of one key and side that came in this batch, by time and then as they came. */
private[join] final class FreshRows {
  private var rows = new Array[FreshRow](16)
  private var count = 0
  private var ordered = true

  def size: Int = count
  def apply(at: Int): FreshRow = rows(at)
  def iterator: Iterator[FreshRow] = Iterator.range(0, count).map(rows(_))

  def clear(): Unit = { Arrays.fill(rows.asInstanceOf[Array[Object]], 0, count, null); count = 0; ordered = true }

  def add(row: FreshRow): Unit = {
    if (count == rows.length) rows = Arrays.copyOf(rows, count * 2)
    if (count > 0 && rows(count - 1).time > row.time) ordered = false
    rows(count) = row
    count += 1
  }

  /** Called when all are there; rows of the same time stay as they came. */
  def arrange(): Unit = if (!ordered) {
    Arrays.sort(rows, 0, count, (a: FreshRow, b: FreshRow) => java.lang.Long.compare(a.time, b.time))
    ordered = true
  }

  /** The first row with that time or a later one. */
  def firstFrom(time: Long): Int = {
    var low = 0
    var high = count
    while (low < high) {
      val middle = (low + high) >>> 1
      if (rows(middle).time < time) low = middle + 1 else high = middle
    }
    low
  }
}
