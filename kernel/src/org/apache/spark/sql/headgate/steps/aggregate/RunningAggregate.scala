package org.apache.spark.sql.headgate.steps.aggregate

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.{Aggregates, RunningBatch, Session}
import org.apache.spark.sql.headgate.steps.core.{Aggregation, KnownFunctions}
import org.apache.spark.sql.headgate.store.{KeepsState, StoreSpec}

/**
 * The aggregates of all rows of a key so far, as changes. The child is an Aggregate, an ordinary one for the
 * optimizer: by the keys, and by a column that is the same in all rows.
 *
 * @param stores the layout of the state, as it was when the graph was built
 * @param known  the functions as they were then
 * @param having which results are there at all; bound to the output
 * @param output keys, results, and whether the row deletes that of its key
 */
case class RunningAggregate(child: LogicalPlan, spec: AggregateSpec, keys: Int, stores: Seq[StoreSpec],
    known: KnownFunctions, having: Option[Expression], output: Seq[Attribute]) extends UnaryNode with KeepsState with PlansItself {
  override def step: String = spec.step
  override def producedAttributes: AttributeSet = AttributeSet(output)
  @transient override lazy val references: AttributeSet = child.outputSet
  override protected def withNewChildInternal(c: LogicalPlan): RunningAggregate = copy(child = c)

  /** Partial, shuffle by key, merge, and our operator. */
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan = {
    val parts = Aggregation.parts(Aggregation.below(child), known)
    import parts.{functions, grouping, results, rows}
    val layout = AggregateStores.of(parts, keys, spec)
    require(layout.map(_.toJson) == stores.map(_.toJson),
      s"the optimizer changed the state of '$step' from $stores to $layout")
    val batch = RunningBatch.of(session)
    val groups = grouping.map(_.toAttribute)
    val partial = Aggregates.exec(Partial, None, None, grouping, functions, 0, planLater(rows))
    val merged = Aggregates.exec(PartialMerge, Some(groups.take(keys)), Some(batch.fold(1)(_.statePartitions)),
      groups, functions, groups.length, partial)
    RunningAggregateExec(merged, spec, groups.take(keys), functions, results.drop(groups.length), having, stores,
      output, batch)
  }
}
