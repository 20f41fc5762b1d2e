package org.apache.spark.sql.headgate.planning

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.Session

/** Counts the rows that pass, for one output of one step. A filter must not move below it. */
case class CountRows(child: LogicalPlan, step: String, counted: String)
  extends UnaryNode with PlansItself {
  override def output: Seq[Attribute] = child.output
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    CountRowsExec(planLater(child), step, counted)
  override protected def withNewChildInternal(c: LogicalPlan): CountRows = copy(child = c)
}

case class CountRowsExec(child: SparkPlan, step: String, counted: String) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def doExecute(): RDD[InternalRow] = {
    val counter = Counters.register(session, step, counted)
    child.execute().mapPartitionsInternal(_.map { row => counter.inc(); row })
  }
  override protected def withNewChildInternal(c: SparkPlan): CountRowsExec = copy(child = c)
}
