package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.Session
import org.apache.spark.sql.headgate.steps.core.{Aggregation, AggregationParts, KnownFunctions}
import org.apache.spark.sql.headgate.store.{KeepsState, KeyMerge, StoreSpec}
import org.apache.spark.sql.types._

/**
 * The windows of a keyed stream. The child is an Aggregate, an ordinary one for the optimizer: by
 * the keys, the window's end and, for a row that no open window takes, the row itself; its last
 * result counts rows. The strategy plans both nodes together.
 *
 * @param stores     the layout of the state, as it was when the graph was built
 * @param known      the aggregate functions as they were then
 * @param conditions of early rows, over the child's output
 * @param lateRow    the columns of a late row, if late rows are wanted and not only counted
 * @param shown      if the only result is an array of rows, of which each leaves with its rank: which of their
 *                   columns leave; else empty
 * @param output     keys, window_start, window_end, results, is_partial, fired_by, pane, event
 *                   time, and the late row if there is one; of ranked rows the rank and the columns that leave
 *                   instead of results and pane
 */
case class KeyedWindow(child: LogicalPlan, spec: Windowing, keys: Int, stores: Seq[StoreSpec], known: KnownFunctions,
    conditions: Seq[Expression], lateRow: Option[StructType], late: LateBefore, shown: Seq[Int],
    output: Seq[Attribute]) extends UnaryNode with KeepsState with PlansItself {
  override def step: String = spec.step
  /** The aggregation, whose functions' buffers the state has. */
  def parts: AggregationParts = Aggregation.parts(Aggregation.below(child), known)
  override def keyMerge(drops: Boolean): KeyMerge = MergeWindows(parts.functions, spec.session)
  override def producedAttributes: AttributeSet = AttributeSet(output)
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    WindowStrategy.plan(session, this, planLater)
  override protected def withNewChildInternal(c: LogicalPlan): KeyedWindow = copy(child = c)
}

object KeyedWindow {
  /** The layout of the state of such an aggregation, before or after the optimizer saw it. */
  def layout(parts: AggregationParts, keys: Int, windowing: Windowing): Seq[StoreSpec] =
    WindowStores.of(parts.grouping.take(keys).map(_.dataType), parts.named, windowing)

  /** The windows of an aggregation that nothing has changed yet. */
  def apply(aggregate: Aggregate, spec: Windowing, keys: Int, conditions: Seq[Expression], lateRow: Option[StructType],
      late: LateBefore, shown: Seq[Int], output: Seq[Attribute]): KeyedWindow = {
    val parts = Aggregation.parts(aggregate)
    KeyedWindow(aggregate, spec, keys, layout(parts, keys, spec), new KnownFunctions(parts.named), conditions, lateRow,
      late, shown, output)
  }
}
