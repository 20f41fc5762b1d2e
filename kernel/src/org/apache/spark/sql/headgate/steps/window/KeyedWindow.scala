package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.optimizer.{CollapseProject, DecimalAggregates, ReplaceExpressions}
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, Project, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.Session
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
  def functions: Seq[AggregateExpression] = KeyedWindow.functions(KeyedWindow.aggregation(child))._1
  override def keyMerge(drops: Boolean): KeyMerge = MergeWindows(functions, spec.session)
  override def producedAttributes: AttributeSet = AttributeSet(output)
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    WindowStrategy.plan(session, this, planLater)
  override protected def withNewChildInternal(c: LogicalPlan): KeyedWindow = copy(child = c)
}

object KeyedWindow {
  /**
   * The aggregation below a window when the optimizer is done with it: to share a part of a function
   * (RewriteWithExpression, of count_if for instance) it moves results into a projection above it.
   */
  def aggregation(child: LogicalPlan): Aggregate = child match {
    case aggregate: Aggregate => aggregate
    case Project(results, aggregate: Aggregate) => aggregate.copy(aggregateExpressions =
      CollapseProject.buildCleanedProjectList(results, aggregate.aggregateExpressions))
    case other => throw new IllegalStateException(s"a window over ${other.nodeName} instead of an aggregation")
  }

  /** The layout of the state of such an aggregation, before or after the optimizer saw it. */
  def layout(aggregate: Aggregate, keys: Int, windowing: Windowing): Seq[StoreSpec] = {
    val (made, grouping, results) = functions(aggregate)
    WindowStores.of(grouping.take(keys).map(_.dataType), WindowStores.named(made, results), windowing)
  }

  private def functions(aggregate: Aggregate)
      : (Seq[AggregateExpression], Seq[NamedExpression], Seq[NamedExpression]) = {
    // both rules change what a function keeps, and run on any node: do it as they will
    val PhysicalAggregation(grouping, made, results, _) =
      DecimalAggregates(ReplaceExpressions(aggregate)): @unchecked
    (made, grouping, results)
  }
}
