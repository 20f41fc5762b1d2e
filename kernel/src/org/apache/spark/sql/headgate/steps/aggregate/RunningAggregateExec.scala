package org.apache.spark.sql.headgate.steps.aggregate

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
import org.apache.spark.sql.headgate.store.{CacheConf, StoreSpec}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{Drained, LeastDeadline, Saturating}

/**
 * Runs a [[RunningAggregate]]: below it are Spark's partial aggregation, the shuffle by key and the merge of
 * what came; the work of a partition is [[AggregateTask]].
 *
 * @param results the user's aggregates, over the functions' result attributes, and the newest event time if
 *                the ttl goes by it
 */
case class RunningAggregateExec(child: SparkPlan, spec: AggregateSpec, keys: Seq[Attribute],
    functions: Seq[AggregateExpression], results: Seq[NamedExpression], having: Option[Expression],
    stores: Seq[StoreSpec], output: Seq[Attribute], @transient batch: Option[RunningBatch])
  extends UnaryExecNode with StatefulStep {

  override def step: String = spec.step
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def outputPartitioning: Partitioning =
    HashPartitioning(output.take(keys.length), getStateInfo.numPartitions)
  override def requiredChildDistribution: Seq[Distribution] = clusteredBy(keys) :: Nil
  override protected def withNewChildInternal(c: SparkPlan): RunningAggregateExec = copy(child = c)
  override val stateStoreNames: Seq[String] = stores.map(_.name)

  // keys are forgotten, and what changed is emitted, without new input
  @transient private lazy val due = new LeastDeadline
  @transient private lazy val clockDue = new LeastDeadline
  override def shouldRunAnotherBatch(watermark: Long): Boolean = {
    val next = RunningBatch.nextWatermarkMs(session)
    next > 0 && due.value <= Saturating.micros(next) ||
      clockDue.value <= Saturating.micros(System.currentTimeMillis() + JobClock.offset(session))
  }

  private def moment(millis: Long): Long = if (millis > 0) Saturating.micros(millis) else Long.MinValue

  override protected def doExecute(): RDD[InternalRow] = {
    batch.foreach(b => OnceABatch.check(b, step))
    metrics // created on the driver before the closure is made
    sparkContext.register(due, s"headgate $step due")
    sparkContext.register(clockDue, s"headgate $step due by the clock")
    def counter(output: String) = Counters.register(session, step, output)
    val drained = batch.isDefined && Drained.of(session).now
    val plan = AggregatePlan(spec, keys, child.output, functions, results, having, output, stores,
      StepTimes(
        batch.fold(Long.MinValue)(b => moment(b.watermarkBeforeMs)), batch.fold(Long.MinValue)(b => moment(b.watermarkMs)),
        batch.flatMap(_.timeBeforeMs).map(Saturating.micros), batch.fold(0L)(b => Saturating.micros(b.timeMs)),
        drained, due, clockDue),
      AggregateCounters(counter("records_out"), counter("state_inserted"), counter("state_removed")),
      CacheConf.bytes(session), batch.exists(_.isFirst), batch.fold(0L)(_.id), TaskFailures.every(session))
    runTasks[AggregateTask](child.execute())((_, opened, rows, _, finished) =>
      new AggregateTask(plan, opened, rows, finished))
  }
}
