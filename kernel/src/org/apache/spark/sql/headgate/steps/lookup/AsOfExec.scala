package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{BinaryExecNode, SparkPlan}
import org.apache.spark.sql.headgate.batch.{JobClock, OnceABatch}
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.RunningBatch
import org.apache.spark.sql.headgate.steps.core.StatefulStep
import org.apache.spark.sql.headgate.store.{CacheConf, StoreSpec}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{Drained, JobTimes, LeastDeadline, Saturating, WaitingTimes}

/** Runs an [[AsOf]]: both sides come partitioned by key; the work of a partition is [[AsOfTask]]. */
case class AsOfExec(left: SparkPlan, right: SparkPlan, step: String, table: String, keepMs: Long,
    leftKeys: Seq[Attribute], at: Attribute, rightKeys: Seq[Attribute], value: Attribute, position: Attribute,
    deleted: Attribute, rowTime: Attribute, found: Attribute, missing: Missing, rider: Option[Attribute],
    held: Option[Attribute], @transient batch: Option[RunningBatch]) extends BinaryExecNode with StatefulStep {

  override def output: Seq[Attribute] = left.output :+ found
  override def producedAttributes: AttributeSet = AttributeSet(found)
  override def outputPartitioning: Partitioning = left.outputPartitioning
  override def requiredChildDistribution: Seq[Distribution] =
    Seq(clusteredBy(leftKeys), clusteredBy(rightKeys))
  override protected def withNewChildrenInternal(l: SparkPlan, r: SparkPlan): AsOfExec = copy(left = l, right = r)
  override def stringArgs: Iterator[Any] = Iterator(step, leftKeys, at, rightKeys, missing)

  override def stores: Seq[StoreSpec] = AsOfStores.of(rightKeys, value, left.output, rider, held)
  override val stateStoreNames: Seq[String] = stores.map(_.name)

  override protected def sums: Seq[(String, String)] = Seq(
    "headgateCacheHits" -> "rows found in the cache",
    "headgateCacheBytes" -> "bytes held by the cache")

  // rows that wait leave when the table has come so far, or is idle: no new input is needed for it
  @transient private lazy val due = new LeastDeadline
  override def shouldRunAnotherBatch(watermark: Long): Boolean = due.value != Long.MaxValue &&
    JobTimes.of(session).flatMap(_.markIfStill(table, System.currentTimeMillis() + JobClock.offset(session)))
      .exists(mark => due.value < Saturating.micros(mark))

  override protected def doExecute(): RDD[InternalRow] = {
    batch.foreach(b => OnceABatch.check(b, step))
    metrics // created on the driver before the closure is made
    def counter(output: String) = Counters.register(session, step, output)
    val dropped = counter("records_dropped")
    val unmatched = missing match {
      case Missing.Null => counter("records_unmatched")
      case Missing.Drop => dropped
      case _ => counter("records_out_missing")
    }
    sparkContext.register(due, s"headgate $step due")
    val (added, removed) = (counter("waiting_added"), counter("waiting_removed"))
    val job = JobTimes.of(session)
    val times = held.map { _ =>
      val least = new WaitingTimes
      sparkContext.register(least, s"headgate $step waiting times")
      job.foreach(_.watchWaiting(step, least, added, removed))
      least
    }
    // as the batches before this one have left it: a replayed batch begins with the same
    val mark = if (batch.isDefined && Drained.of(session).now) Some(Long.MaxValue) else job.flatMap(_.mark(table))
    val watermark = batch.map(_.watermarkMs).filter(_ > 0).fold(Long.MinValue)(Saturating.micros)
    val plan = AsOfPlan(leftKeys, at, rightKeys, value, position, deleted, rowTime, missing, rider, left.output,
      right.output, LookupStores.waitingColumns(left.output, rider), stores,
      mark.fold(Long.MinValue)(Saturating.micros), job.flatMap(_.newest(table)).fold(Long.MinValue)(Saturating.micros),
      Saturating.micros(keepMs), watermark, held, times, due, batch.fold(0L)(_.id), CacheConf.bytes(session),
      LookupCounters(counter("records_in"), counter("records_out"), unmatched, counter("state_inserted"),
        counter("state_removed"), added, removed), dropped, TaskFailures.every(session))
    runTasks[AsOfTask](left.execute(), Some(right.execute()))((_, opened, stream, rows, finished) =>
      new AsOfTask(plan, opened, stream, rows, finished))
  }
}
