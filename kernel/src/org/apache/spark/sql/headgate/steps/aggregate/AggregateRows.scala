package org.apache.spark.sql.headgate.steps.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.headgate.steps.core.AggregateBuffers

/** The rows of a running aggregate: what comes as keys and buffers, what is kept, and what leaves. */
final class AggregateRows(plan: AggregatePlan) {
  private val buffers = new AggregateBuffers(plan.functions, AggregateStores.Book.map(_.dataType))
  private val (flagsAt, expiresAt) = (buffers.size, buffers.size + 1)
  private val groups = plan.input.length - buffers.size
  private val book = AggregateStores.Book.map(f => Literal(null, f.dataType))
  private val keyOf = GeneratedCode.projection(plan.keys, plan.input)
  private val valueOf = GeneratedCode.projection(plan.input.drop(groups) ++ book, plan.input)
  private val noBook = new GenericInternalRow(book.length)

  /** Of a group of new rows: its key, and its row of state. */
  def key(group: InternalRow): UnsafeRow = keyOf(group)
  def value(group: InternalRow): UnsafeRow = valueOf(group)
  def merge(kept: UnsafeRow, in: UnsafeRow): UnsafeRow = buffers.merge(kept, in, noBook)

  def flags(kept: UnsafeRow): Int = kept.getInt(flagsAt)
  def expires(kept: UnsafeRow): Long = if (kept.isNullAt(expiresAt)) AggregateStores.Unknown else kept.getLong(expiresAt)
  def setFlags(kept: UnsafeRow, flags: Int): Unit = kept.setInt(flagsAt, flags)
  def setExpires(kept: UnsafeRow, until: Long): Unit =
    if (until == AggregateStores.Unknown) kept.setNullAt(expiresAt) else kept.setLong(expiresAt, until)

  private val known = (plan.keys ++ plan.functions.map(_.resultAttribute)).map(_.withNullability(true))
  private val shown = if (plan.spec.byEventTime) plan.results.init else plan.results
  private val update = GeneratedCode.projection(plan.keys ++ shown :+ Literal(false), known)
  private val deleted = GeneratedCode.projection(
    plan.keys ++ shown.map(r => Literal(null, r.dataType)) :+ Literal(true), plan.keys)
  private val newest = if (plan.spec.byEventTime) GeneratedCode.projection(plan.results.last :: Nil, known) else null
  private val condition = plan.having.map(GeneratedCode.predicate(_, plan.output)).orNull
  private val joined = new JoinedRow

  /** The row of a key as it leaves; good until the next call. */
  def result(key: UnsafeRow, kept: UnsafeRow): UnsafeRow = update(joined(key, buffers.evaluate(kept)))
  def deletion(key: UnsafeRow): UnsafeRow = deleted(key)
  def isWanted(result: UnsafeRow): Boolean = condition == null || condition.eval(result)

  /** The newest event time of a row's rows; none if no row has one. */
  def time(key: UnsafeRow, kept: UnsafeRow): Option[Long] = {
    val row = newest(joined(key, buffers.evaluate(kept)))
    if (row.isNullAt(0)) None else Some(row.getLong(0))
  }
}
