package org.apache.spark.sql.headgate.planning

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.spark.Session

/**
 * A stream that several steps use. It stands above a repartition and claims every column, so that
 * no optimizer rule makes its copies differ; Spark's ReuseExchange then computes it once.
 */
case class Tee(child: LogicalPlan) extends UnaryNode with PlansItself {
  override def output: Seq[Attribute] = child.output
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    TeeExec(planLater(child))
  override protected def withNewChildInternal(c: LogicalPlan): Tee = copy(child = c)
}

case class TeeExec(child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(c: SparkPlan): TeeExec = copy(child = c)
}

/**
 * Hides how the rows below are partitioned. Spark leaves a repartition out that changes nothing
 * (EnsureRequirements), and a [[Tee]] without its exchange would be computed once for each user.
 */
case class Unplaced(child: LogicalPlan) extends UnaryNode with PlansItself {
  override def output: Seq[Attribute] = child.output
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    UnplacedExec(planLater(child))
  override protected def withNewChildInternal(c: LogicalPlan): Unplaced = copy(child = c)
}

case class UnplacedExec(child: SparkPlan) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning =
    UnknownPartitioning(child.outputPartitioning.numPartitions)
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(c: SparkPlan): UnplacedExec = copy(child = c)
}
