package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.aggregates.BatchValues
import org.apache.spark.sql.headgate.batch.OnceABatch
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.{RunningBatch, Session}
import org.apache.spark.sql.headgate.steps.core.{Aggregation, KnownFunctions, StatefulStep}
import org.apache.spark.sql.headgate.store.{KeepsState, StoreSpec}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.Drained

/**
 * The last `size` rows of each key, whenever `every` more have come. The child is an Aggregate by
 * the keys and the rows' position, for its analysis only: rows are counted one by one, in the order
 * of their source, so they come as they are.
 *
 * @param known  the aggregate functions as they were when the graph was built
 * @param values what a batch tells the aggregates
 * @param output keys, window_start, window_end, results, is_partial, fired_by, pane, event time;
 *               the times are those of the first and last row, the child's last two results
 */
case class CountWindow(child: LogicalPlan, step: String, size: Long, every: Long, keys: Int,
    stores: Seq[StoreSpec], known: KnownFunctions, values: BatchValues, output: Seq[Attribute]) extends UnaryNode with KeepsState with PlansItself {
  override def producedAttributes: AttributeSet = AttributeSet(output)
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan = {
    val parts = Aggregation.parts(Aggregation.below(child), known)
    import parts.{functions, grouping, results, rows}
    val layout = CountStores.layout(parts, keys)
    require(layout.map(_.toJson) == stores.map(_.toJson),
      s"the optimizer changed the state of '$step' from $stores to $layout")
    val groups = grouping.map(_.toAttribute)
    CountWindowExec(planLater(rows), step, size, every, groups.take(keys), groups(keys), functions,
      results.drop(groups.length), stores, values, output, RunningBatch.of(session))
  }
  override protected def withNewChildInternal(c: LogicalPlan): CountWindow = copy(child = c)
}

case class CountWindowExec(child: SparkPlan, step: String, size: Long, every: Long,
    keys: Seq[Attribute], position: Attribute, functions: Seq[AggregateExpression],
    results: Seq[NamedExpression], stores: Seq[StoreSpec], values: BatchValues, output: Seq[Attribute],
    @transient batch: Option[RunningBatch]) extends UnaryExecNode with StatefulStep {

  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def outputPartitioning: Partitioning =
    HashPartitioning(output.take(keys.length), getStateInfo.numPartitions)
  override def requiredChildDistribution: Seq[Distribution] =
    clusteredBy(keys) :: Nil
  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    Seq((keys :+ position).map(SortOrder(_, Ascending)))
  override protected def withNewChildInternal(c: SparkPlan): CountWindowExec = copy(child = c)
  override val stateStoreNames: Seq[String] = stores.map(_.name)

  override protected def doExecute(): RDD[InternalRow] = {
    batch.foreach(b => OnceABatch.check(b, step))
    metrics // created on the driver before the closure is made
    values.number = batch.fold(0L)(_.id)
    def counter(output: String) = Counters.register(session, step, output)
    val plan = CountPlan(size, every, keys, child.output, functions, results,
      ended = batch.isDefined && Drained.of(session).now, counter("records_in"), counter("records_out"),
      counter("state_inserted"), counter("state_removed"), batch.fold(0L)(_.id), TaskFailures.every(session))
    runTasks[CountTask](child.execute())((_, opened, rows, _, finished) =>
      new CountTask(plan, opened, rows, finished))
  }
}
