package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.Session
import org.apache.spark.sql.headgate.steps.core.Aggregation
import org.apache.spark.sql.headgate.store.{KeepsState, KeyMerge, StoreSpec}
import org.apache.spark.sql.types._

/**
 * The windows of a keyed stream. The child is an Aggregate, an ordinary one for the optimizer: by
 * the keys, the window's end and, for a row that no open window takes, the row itself; its last
 * result counts rows. The strategy plans both nodes together.
 *
 * @param stores     the layout of the state, as it was when the graph was built
 * @param conditions of early rows, over the child's output
 * @param lateRow    the columns of a late row, if late rows are wanted and not only counted
 * @param output     keys, window_start, window_end, results, is_partial, fired_by, pane, event
 *                   time, and the late row if there is one
 */
case class KeyedWindow(child: LogicalPlan, spec: Windowing, keys: Int, stores: Seq[StoreSpec],
    conditions: Seq[Expression], lateRow: Option[StructType], late: LateBefore,
    output: Seq[Attribute]) extends UnaryNode with KeepsState with PlansItself {
  override def step: String = spec.step
  /** The aggregate functions, whose buffers the state has. */
  def functions: Seq[AggregateExpression] = Aggregation.parts(Aggregation.below(child))._1
  override def keyMerge(drops: Boolean): KeyMerge = MergeWindows(functions, spec.session)
  override def producedAttributes: AttributeSet = AttributeSet(output)
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    WindowStrategy.plan(session, this, planLater)
  override protected def withNewChildInternal(c: LogicalPlan): KeyedWindow = copy(child = c)
}

object KeyedWindow {
  /** The layout of the state of such an aggregation, before or after the optimizer saw it. */
  def layout(aggregate: Aggregate, keys: Int, windowing: Windowing): Seq[StoreSpec] = {
    val (made, grouping, results) = Aggregation.parts(aggregate)
    WindowStores.of(grouping.take(keys).map(_.dataType), Aggregation.named(made, results), windowing)
  }
}
