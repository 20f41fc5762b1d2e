package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.headgate.time.LeastDeadline
import org.apache.spark.sql.types._

case class WindowCounters(in: StepCounter, out: StepCounter, late: StepCounter,
    inserted: StepCounter, removed: StepCounter)

/**
 * All that a task of a window step needs from the driver; event times are in microseconds.
 *
 * @param shown of windows that give rows with a rank: which columns of a row leave; else empty
 * @param first whether the query was started with this batch: its lateness may have been another
 */
case class WindowPlan(spec: Windowing, keys: Seq[Attribute], end: Attribute, lateBytes: Attribute,
    input: Seq[Attribute], functions: Seq[AggregateExpression], count: Int,
    results: Seq[NamedExpression], conditions: Seq[Expression], lateRow: Option[StructType],
    shown: Seq[Int], output: Seq[Attribute], stores: Seq[StoreSpec], before: Long, now: Long, due: LeastDeadline,
    clock: BatchClock, first: Boolean, batchId: Long, counters: WindowCounters, failEvery: Int)

/**
 * Processing time in milliseconds: of the batch before, if there was one, and of this one.
 *
 * @param due gets the time at which there is something to do
 */
case class BatchClock(before: Option[Long], now: Long, due: LeastDeadline)
