package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.batch.{JobClock, OnceABatch}
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.RunningBatch
import org.apache.spark.sql.headgate.steps.core.StatefulStep
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{Drained, LeastDeadline, Saturating}
import org.apache.spark.sql.types.StructType

/**
 * Runs a [[KeyedWindow]]: below it are Spark's partial aggregation, the shuffle by key and the
 * merge of what came; the work of a partition is [[WindowTask]].
 *
 * @param count     where among the functions is the one that counts rows
 * @param results   the user's aggregates, over the functions' result attributes
 */
case class KeyedWindowExec(child: SparkPlan, spec: Windowing, keys: Seq[Attribute], end: Attribute,
    lateBytes: Attribute, functions: Seq[AggregateExpression], count: Int,
    results: Seq[NamedExpression], conditions: Seq[Expression], lateRow: Option[StructType],
    late: LateBefore, stores: Seq[StoreSpec], shown: Seq[Int], output: Seq[Attribute],
    @transient batch: Option[RunningBatch]) extends UnaryExecNode with StatefulStep {

  override def step: String = spec.step
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def outputPartitioning: Partitioning =
    HashPartitioning(output.take(keys.length), getStateInfo.numPartitions)
  override def requiredChildDistribution: Seq[Distribution] =
    clusteredBy(keys) :: Nil
  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    Seq(if (spec.session) (keys :+ end).map(SortOrder(_, Ascending)) else Nil)
  override protected def withNewChildInternal(c: SparkPlan): KeyedWindowExec = copy(child = c)
  override val stateStoreNames: Seq[String] = stores.map(_.name)

  // A row at the very end of a session is still in it, and is on time while the watermark is there:
  // a session ends when the watermark is beyond its end, or what it has would depend on the batches.
  private def behind: Long = if (spec.session) 1L else 0L

  /**
   * The times of the batch before and of this one, in microseconds: watermarks, or the batches' own.
   * A clock that was set back makes no row late.
   */
  @transient private lazy val times: (Long, Long) = batch.fold((Long.MinValue, Long.MinValue)) { b =>
    val drained = Drained.of(session)
    def micros(millis: Long, ended: Boolean) =
      if (ended) Long.MaxValue else if (millis > 0) Saturating.micros(millis) - behind else Long.MinValue
    if (spec.processing) {
      val now = micros(b.timeMs, drained.now)
      (math.min(micros(b.timeBeforeMs.getOrElse(0L), ended = false), now), now)
    } else (micros(b.watermarkBeforeMs, drained.before), micros(b.watermarkMs, drained.now))
  }

  // a window that can close, or whose time for late rows is up, needs no new input for it
  @transient private lazy val due = new LeastDeadline
  @transient private lazy val clockDue = new LeastDeadline
  override def shouldRunAnotherBatch(watermark: Long): Boolean = {
    val next = RunningBatch.nextWatermarkMs(session)
    !spec.processing && next > 0 && due.value <= Saturating.micros(next) - behind ||
      spec.byClock && clockDue.value <= System.currentTimeMillis() + JobClock.offset(session)
  }

  override protected def doExecute(): RDD[InternalRow] = {
    batch.foreach(b => OnceABatch.check(b, step))
    metrics // created on the driver before the closure is made
    val (before, now) = times
    late.micros = if (spec.processing) Long.MinValue else before
    late.number = batch.fold(0L)(_.id)
    late.time = batch.fold(0L)(b => Saturating.micros(b.timeMs))
    sparkContext.register(due, s"headgate $step due")
    sparkContext.register(clockDue, s"headgate $step due by the clock")
    val clock = BatchClock(batch.flatMap(_.timeBeforeMs), batch.fold(0L)(_.timeMs), clockDue)
    def counter(output: String) = Counters.register(session, step, output)
    val plan = WindowPlan(spec, keys, end, lateBytes, child.output, functions, count, results,
      conditions, lateRow, shown, output, stores, before, now, due, clock,
      batch.exists(_.isFirst), batch.fold(0L)(_.id),
      WindowCounters(counter("records_in"), counter("records_out"), counter("records_out_late"),
        counter("state_inserted"), counter("state_removed")), TaskFailures.every(session))
    runTasks[WindowTask](child.execute())((_, opened, rows, _, finished) =>
      if (plan.spec.session) new SessionTask(plan, opened, rows, finished)
      else new FixedWindowTask(plan, opened, rows, finished))
  }
}
