package org.apache.spark.sql.headgate.steps.top

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.batch.OnceABatch
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.RunningBatch
import org.apache.spark.sql.headgate.steps.core.{SortLimits, StatefulStep}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.headgate.testing.TaskFailures

/** Runs a [[TopRows]]; the work of a partition is [[TopTask]]. */
case class TopExec(child: SparkPlan, step: String, n: Int, keys: Seq[Attribute], ids: Seq[Attribute],
    deleted: Option[Attribute], row: Seq[Attribute], order: Seq[SortOrder], shown: Int, keyOf: Seq[Int],
    output: Seq[Attribute], @transient batch: Option[RunningBatch]) extends UnaryExecNode with StatefulStep {

  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def outputPartitioning: Partitioning = UnknownPartitioning(getStateInfo.numPartitions)
  override def requiredChildDistribution: Seq[Distribution] = clusteredBy(keys) :: Nil
  override protected def withNewChildInternal(c: SparkPlan): TopExec = copy(child = c)
  override def stores: Seq[StoreSpec] = TopStores.of(keys, ids, row)
  override val stateStoreNames: Seq[String] = stores.map(_.name)

  override protected def doExecute(): RDD[InternalRow] = {
    batch.foreach(b => OnceABatch.check(b, step))
    metrics // created on the driver before the closure is made
    def counter(output: String) = Counters.register(session, step, output)
    val plan = TopPlan(n, keys, ids, deleted, child.output, row, order, shown, keyOf,
      TopCounters(counter("records_in"), counter("records_out"), counter("state_inserted"), counter("state_removed")),
      SortLimits.of(session), batch.fold(0L)(_.id), TaskFailures.every(session))
    runTasks[TopTask](child.execute())((_, opened, rows, _, finished) => new TopTask(plan, opened, rows, finished))
  }
}
