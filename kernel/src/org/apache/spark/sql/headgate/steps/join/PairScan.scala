package org.apache.spark.sql.headgate.steps.join

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.headgate.time.Saturating

/**
 * Goes through the pairs of some rows of a side with some of the other.
 *
 * @param test what else must hold of a pair
 * @param widths how many columns the rows of each side have
 */
private[join] final class PairScan(spec: JoinSpec, widths: Seq[Int], test: (UnsafeRow, UnsafeRow) => Boolean) {
  private val rows = widths.map(new UnsafeRow(_)).toArray
  private var side = JoinSpec.Left
  private var outer: TimedRows = null
  private var inner: TimedRows = null
  private var at = 0
  private var until = 0 // of the outer rows
  private var innerAt = 0
  private var latest = 0L
  private var isBegun = false

  /** Of the pair that was found last; good until the next one. */
  def left: UnsafeRow = rows(JoinSpec.Left)
  def right: UnsafeRow = rows(JoinSpec.Right)
  def time: Long = math.max(outer.time(at), inner.time(innerAt - 1))

  /** @param side that of the outer rows, which come one after the other with all that match them */
  def start(outer: TimedRows, side: Int, inner: TimedRows): Unit = {
    this.outer = outer
    this.inner = inner
    this.side = side
    isBegun = false
    if (outer.size == 0 || inner.size == 0) { at = 0; until = 0 }
    else {
      at = outer.firstFrom(Saturating.minus(inner.time(0), spec.latest(side)))
      val past = Saturating.minus(inner.time(inner.size - 1), spec.earliest(side))
      until = if (past == Long.MaxValue) outer.size else outer.firstFrom(past + 1)
    }
  }

  /** Finds the next pair, and notes that its rows have a match. */
  def advance(): Boolean = {
    while (at < until) {
      if (!isBegun) begin()
      while (innerAt < inner.size && inner.time(innerAt) <= latest) {
        inner.row(innerAt, rows(1 - side))
        innerAt += 1
        if (test(left, right)) {
          note(inner, innerAt - 1, 1 - side)
          note(outer, at, side)
          return true
        }
      }
      at += 1
      isBegun = false
    }
    false
  }

  private def begin(): Unit = {
    val time = outer.time(at)
    outer.row(at, rows(side))
    latest = Saturating.plus(time, spec.latest(side))
    innerAt = inner.firstFrom(Saturating.plus(time, spec.earliest(side)))
    isBegun = true
  }

  private def note(of: TimedRows, n: Int, side: Int): Unit =
    if (spec.gives(side) && !of.isMatched(n)) of.setMatched(n)
}
