package org.apache.spark.sql.headgate.steps.dedupe

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.batch.OnceABatch
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.RunningBatch
import org.apache.spark.sql.headgate.steps.core.{SortLimits, StatefulStep}
import org.apache.spark.sql.headgate.store.{CacheConf, StoreSpec}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.Saturating

/** Runs a [[Dedupe]]; the work of a partition is [[DedupeTask]]. */
case class DedupeExec(child: SparkPlan, step: String, keys: Seq[Attribute], order: Seq[Attribute],
    time: Option[Attribute], within: Long, mark: Attribute, @transient batch: Option[RunningBatch])
  extends UnaryExecNode with StatefulStep {

  override def output: Seq[Attribute] = child.output :+ mark
  override def producedAttributes: AttributeSet = AttributeSet(mark)
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def requiredChildDistribution: Seq[Distribution] = clusteredBy(keys) :: Nil
  override protected def withNewChildInternal(c: SparkPlan): DedupeExec = copy(child = c)
  override def stores: Seq[StoreSpec] = DedupeStores.of(keys.map(_.dataType))
  override val stateStoreNames: Seq[String] = Seq(DedupeStores.Keys, DedupeStores.Due)

  override protected def doExecute(): RDD[InternalRow] = {
    batch.foreach(b => OnceABatch.check(b, step))
    metrics // created on the driver before the closure is made
    def counter(output: String) = Counters.register(session, step, output)
    val now = batch.fold(Long.MinValue) { b =>
      if (time.isEmpty) Saturating.micros(b.timeMs)
      else if (b.watermarkMs > 0) Saturating.micros(b.watermarkMs)
      else Long.MinValue
    }
    val plan = DedupePlan(keys, order, time, within, child.output, now, batch.exists(_.isFirst),
      DedupeCounters(counter("records_in"), counter("records_out"), counter("records_out_duplicates"),
        counter("state_inserted"), counter("state_removed")),
      CacheConf.bytes(session), SortLimits.of(session), batch.fold(0L)(_.id), TaskFailures.every(session))
    runTasks[DedupeTask](child.execute())((_, opened, rows, _, finished) =>
      new DedupeTask(plan, opened, rows, finished))
  }
}
