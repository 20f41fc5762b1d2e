package org.apache.spark.sql.headgate.steps.dedupe

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.{RunningBatch, Session}
import org.apache.spark.sql.headgate.store.{KeepsState, StoreSpec}

/**
 * The rows of a stream, with a mark on those whose key has come before.
 *
 * @param order  of the rows of a key
 * @param time   the event time of rows, if keys are forgotten by it and not by the clock
 * @param within for how long a key is known, in microseconds; 0: for ever
 */
case class Dedupe(child: LogicalPlan, step: String, keys: Seq[Attribute], order: Seq[Attribute],
    time: Option[Attribute], within: Long, mark: AttributeReference)
  extends UnaryNode with KeepsState with PlansItself {
  override def stores: Seq[StoreSpec] = DedupeStores.of(keys.map(_.dataType))
  override def output: Seq[Attribute] = child.output :+ mark
  override def producedAttributes: AttributeSet = AttributeSet(mark)
  @transient override lazy val references: AttributeSet = AttributeSet(keys ++ order ++ time)
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    DedupeExec(planLater(child), step, keys, order, time, within, mark, RunningBatch.of(session))
  override protected def withNewChildInternal(c: LogicalPlan): Dedupe = copy(child = c)
}
