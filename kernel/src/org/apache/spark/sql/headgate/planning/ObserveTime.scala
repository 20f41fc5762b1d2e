/** Owns the place in the plan where a source's rows show their event time. */
package org.apache.spark.sql.headgate.planning

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.spark.Session
import org.apache.spark.sql.headgate.time.{JobTimes, NewestTime}

/** Rows pass as they are; the newest event time among them is kept for the job's watermark. */
case class ObserveTime(child: LogicalPlan, source: String, at: Attribute)
  extends UnaryNode with PlansItself {
  override def output: Seq[Attribute] = child.output
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    ObserveTimeExec(planLater(child), source, at)
  override protected def withNewChildInternal(c: LogicalPlan): ObserveTime = copy(child = c)
}

case class ObserveTimeExec(child: SparkPlan, source: String, at: Attribute) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def doExecute(): RDD[InternalRow] = {
    val times = new NewestTime
    sparkContext.register(times, s"headgate $source event time")
    JobTimes.of(session).foreach(_.watch(source, times))
    val place = child.output.indexWhere(_.exprId == at.exprId)
    child.execute().mapPartitionsInternal(_.map { row =>
      if (row.isNullAt(place)) times.saw() else times.saw(row.getLong(place))
      row
    })
  }
  override protected def withNewChildInternal(c: SparkPlan): ObserveTimeExec = copy(child = c)
}
