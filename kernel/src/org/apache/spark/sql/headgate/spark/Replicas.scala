/** Owns rows that every partition gets, and streams that are brought to a number of partitions without a shuffle. */
package org.apache.spark.sql.headgate.spark

import org.apache.spark.rdd.{PartitionCoalescer, PartitionGroup, RDD}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, ShufflePartitionIdPassThrough, UnknownPartitioning}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ReusedExchangeExec, ShuffleExchangeExec}
import org.apache.spark.sql.types.IntegerType

object Replicas {

  /** The rows of a plan in each of the state's partitions, with one more column. */
  def of(rows: SparkPlan, session: Session, batch: Option[RunningBatch]): SparkPlan = {
    val partitions = batch.fold(session.sessionState.conf.numShufflePartitions)(_.statePartitions)
    val copies = CopyRows(rows, AttributeReference("__hg_copy", IntegerType, nullable = false)(), partitions)
    ShuffleExchangeExec(ShufflePartitionIdPassThrough(DirectShufflePartitionID(copies.to), partitions),
      copies, ENSURE_REQUIREMENTS, None)
  }

  /**
   * The partitions of a stream put onto a number of partitions: the first of them again and again in
   * turn, so that a partition's rows stay together and in order. Where there are fewer, some are empty.
   */
  def folded(rows: RDD[InternalRow], partitions: Int): RDD[InternalRow] =
    if (rows.getNumPartitions == partitions) rows
    else rows.coalesce(partitions, shuffle = false, Some(new InTurn))

  /** The rows of a plan, unless it is made of a shuffle of nothing: a source without news needs no stage. */
  def unlessEmpty(plan: SparkPlan): Option[RDD[InternalRow]] = if (isEmpty(plan)) None else Some(plan.execute())

  private def isEmpty(plan: SparkPlan): Boolean = plan match {
    case shuffle: ShuffleExchangeExec => shuffle.inputRDD.getNumPartitions == 0
    case again: ReusedExchangeExec => isEmpty(again.child)
    case _: BaseAggregateExec => false // without a key it has a row of no rows
    case unary: UnaryExecNode => isEmpty(unary.child)
    case _ => false
  }
}

/** Each row once for every partition, which is its last column. */
case class CopyRows(child: SparkPlan, to: AttributeReference, partitions: Int) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output :+ to
  override def producedAttributes: AttributeSet = AttributeSet(to)
  override def outputPartitioning: Partitioning = UnknownPartitioning(child.outputPartitioning.numPartitions)
  override protected def withNewChildInternal(c: SparkPlan): CopyRows = copy(child = c)

  override protected def doExecute(): RDD[InternalRow] = {
    val (columns, last, copies) = (child.output, to, partitions)
    child.execute().mapPartitionsInternal { rows =>
      val number = new GenericInternalRow(1)
      val joined = new JoinedRow
      val make = GeneratedCode.projection(columns :+ last, columns :+ last)
      rows.flatMap { row =>
        Iterator.range(0, copies).map { p =>
          number.setInt(0, p)
          make(joined(row, number)): InternalRow
        }
      }
    }
  }
}

private final class InTurn extends PartitionCoalescer with Serializable {
  override def coalesce(partitions: Int, parent: RDD[_]): Array[PartitionGroup] = {
    val groups = Array.fill(partitions)(new PartitionGroup())
    parent.partitions.foreach(p => groups(p.index % partitions).partitions += p)
    groups
  }
}
