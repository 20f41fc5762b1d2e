package org.apache.spark.sql.headgate.steps.join

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.{RunningBatch, Session}
import org.apache.spark.sql.headgate.store.{KeepsState, StoreSpec}

/**
 * What else must hold of two rows that match: a condition over the left row's columns and, as one struct,
 * the right row. It is optimized already, and no expression of the plan, whose rules would look for its
 * columns in the rows that come.
 */
final class PairTest(val condition: Expression, val input: Seq[Attribute]) extends Serializable {
  override def toString: String = condition.sql
}

/**
 * The join of two keyed streams, whose rows come in one.
 *
 * @param input  the number of a row's side
 * @param tie    what decides between rows of the same time that have no position
 * @param rows   a column for each side, null in the rows of the other
 * @param output place, event time, number of the output, left row and right row
 */
case class Join(child: LogicalPlan, spec: JoinSpec, keys: Seq[Attribute], input: Attribute, position: Attribute,
    time: Attribute, tie: Option[Attribute], rows: Seq[Attribute], test: Option[PairTest],
    stores: Seq[StoreSpec], output: Seq[Attribute]) extends UnaryNode with KeepsState with PlansItself {
  override def step: String = spec.step
  override def producedAttributes: AttributeSet = AttributeSet(output)
  // all of a row is state: column pruning must not change it
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    JoinExec(planLater(child), spec, keys, input, position, time, tie, rows, test, stores, output,
      RunningBatch.of(session))
  override protected def withNewChildInternal(c: LogicalPlan): Join = copy(child = c)
}
