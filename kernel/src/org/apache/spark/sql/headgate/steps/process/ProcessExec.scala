package org.apache.spark.sql.headgate.steps.process

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.batch.{JobClock, OnceABatch}
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.{Metric, PythonSettings, RunningBatch, Session}
import org.apache.spark.sql.headgate.steps.core.{SortLimits, StatefulStep}
import org.apache.spark.sql.headgate.store.{CacheConf, StoreSpec}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{Drained, LeastDeadline, Saturating}

/** Runs a [[Process]]: rows come by key, input and place; the work of a partition is [[ProcessTask]]. */
case class ProcessExec(child: SparkPlan, spec: ProcessSpec, keys: Seq[Attribute], input: Attribute,
    position: Attribute, time: Attribute, tie: Option[Attribute], rows: Seq[Attribute], task: PythonTask,
    stores: Seq[StoreSpec], output: Seq[Attribute], @transient batch: Option[RunningBatch])
  extends UnaryExecNode with StatefulStep {

  override def step: String = spec.step
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def outputPartitioning: Partitioning = UnknownPartitioning(getStateInfo.numPartitions)
  override def requiredChildDistribution: Seq[Distribution] =
    clusteredBy(keys) :: Nil
  // rows without a position come by time: a replayed batch gets its blocks in another order
  private def order: Seq[Attribute] = Seq(input, position) ++ tie.toSeq.flatMap(Seq(time, _))
  override protected def withNewChildInternal(c: SparkPlan): ProcessExec = copy(child = c)
  override protected def moreMetrics: Map[String, Metric] = pythonMetrics
  override val stateStoreNames: Seq[String] = stores.map(_.name)

  /** This batch's watermark in microseconds. */
  @transient private lazy val watermark: Long = batch.fold(Long.MinValue) { b =>
    if (Drained.of(session).now) Long.MaxValue
    else if (b.watermarkMs > 0) Saturating.micros(b.watermarkMs)
    else Long.MinValue
  }

  // a timer that is due needs no new input
  @transient private lazy val due = new LeastDeadline
  @transient private lazy val clockDue = new LeastDeadline
  override def shouldRunAnotherBatch(watermark: Long): Boolean = {
    val next = RunningBatch.nextWatermarkMs(session)
    next > 0 && due.value <= Saturating.micros(next) ||
      clockDue.value <= (System.currentTimeMillis() + JobClock.offset(session)) * 1000L
  }

  override protected def doExecute(): RDD[InternalRow] = {
    batch.foreach(b => OnceABatch.check(b, step))
    metrics // created on the driver before the closure is made
    val now = watermark
    sparkContext.register(due, s"headgate $step due")
    sparkContext.register(clockDue, s"headgate $step due by the clock")
    def counter(output: String) = Counters.register(session, step, output)
    val wire = ProcessWire.of(spec, keys, rows)
    val python = new ProcessPython(task, wire, PythonSettings.of(conf, pythonMetrics))
    val plan = ProcessPlan(spec, wire, keys, input, time, rows, child.output, now,
      batch.fold(0L)(_.timeMs) * 1000L, due, clockDue,
      ProcessCounters(counter("records_in"),
        spec.outputNames.map(n => counter(if (n == "out") "records_out" else s"records_out_$n")),
        counter("state_inserted"), counter("state_removed"), Counters.registerNamed(session, step)),
      batch.fold(0L)(_.id), TaskFailures.every(session), ProcessExec.largeFrom(session),
      CacheConf.bytes(session), order, SortLimits.of(session))
    runTasks[ProcessTask](child.execute())((partition, opened, rows, _, finished) =>
      new ProcessTask(plan, opened, rows, partition, python, finished))
  }
}

object ProcessExec {
  private val LargeKey = "spark.headgate.process.large.entries"
  def largeFrom(session: Session): Long = session.conf.getOption(LargeKey).fold(1000L)(_.toLong)
}
