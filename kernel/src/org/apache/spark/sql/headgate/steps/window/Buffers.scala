package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.headgate.steps.core.AggregateBuffers
import org.apache.spark.sql.types._

/**
 * The aggregation buffers of a window. A window's row is the buffers as they are stored, then since, pane
 * and flags, and the start of a session. Rows that come back are good until the next call.
 */
final class Buffers(aggregates: Seq[AggregateExpression], session: Boolean) {
  private val book = Seq[DataType](LongType, IntegerType, IntegerType) ++ (if (session) Seq(LongType) else Nil)
  private val buffers = new AggregateBuffers(aggregates, book)
  private val bookRow = new SpecificInternalRow(book)
  val size: Int = buffers.size
  private val (sinceAt, paneAt, flagsAt, startAt) = (size, size + 1, size + 2, size + 3)

  def since(row: UnsafeRow): Long = row.getLong(sinceAt)
  def pane(row: UnsafeRow): Int = row.getInt(paneAt)
  def has(row: UnsafeRow, flag: Int): Boolean = (row.getInt(flagsAt) & flag) != 0

  def start(session: UnsafeRow): Long = session.getLong(startAt)

  /** Changes where a session begins, and whether its on-time row is out. */
  def place(session: UnsafeRow, start: Long, onTime: Boolean): Unit = {
    val others = session.getInt(flagsAt) & ~WindowStores.OnTime
    session.setLong(startAt, start)
    session.setInt(flagsAt, if (onTime) others | WindowStores.OnTime else others)
  }

  /** A window's row with that of new rows, which have no panes yet, or of another session. */
  def merge(window: UnsafeRow, in: UnsafeRow): UnsafeRow =
    buffers.merge(window, in, booked(since(window) + since(in), math.max(pane(window), pane(in)),
      window.getInt(flagsAt) | in.getInt(flagsAt), if (session) math.min(start(window), start(in)) else 0L))

  /** The window's row after a pane: with nothing in it if panes are discarded. */
  def fired(window: UnsafeRow, flags: Int, discarding: Boolean): UnsafeRow = {
    val (pane, all) = (this.pane(window) + 1, window.getInt(flagsAt) | flags)
    if (!discarding) {
      window.setLong(sinceAt, 0L); window.setInt(paneAt, pane); window.setInt(flagsAt, all)
      window
    } else buffers.empty(booked(0L, pane, all, if (session) start(window) else 0L))
  }

  private def booked(since: Long, pane: Int, flags: Int, start: Long): InternalRow = {
    bookRow.setLong(0, since); bookRow.setInt(1, pane); bookRow.setInt(2, flags)
    if (session) bookRow.setLong(3, start)
    bookRow
  }

  /** The results of the aggregate functions. */
  def evaluate(window: UnsafeRow): InternalRow = buffers.evaluate(window)
}
