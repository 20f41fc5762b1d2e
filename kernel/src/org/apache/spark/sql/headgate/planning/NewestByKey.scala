/** Owns leaving one change of each key in a batch: the newest. */
package org.apache.spark.sql.headgate.planning

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Ascending, Attribute, AttributeSet, SortOrder, UnsafeRow}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical.{ClusteredDistribution, Distribution, Partitioning}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.spark.{GeneratedCode, Session}

/** Streams of changes have at most one row a key and batch; a database's log has as many as there were.
  *
  * @param position by which a change is newer than another
  * @param bad not null in records that did not parse, which have no key and all pass
  */
case class NewestByKey(keys: Seq[Attribute], position: Attribute, bad: Attribute, child: LogicalPlan)
  extends UnaryNode with PlansItself {
  override def output: Seq[Attribute] = child.output
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    NewestByKeyExec(keys, position, bad, planLater(child))
  override protected def withNewChildInternal(c: LogicalPlan): NewestByKey = copy(child = c)
}

/** Spark brings the rows of a key together, in their order, and spills if it must. */
case class NewestByKeyExec(
    keys: Seq[Attribute], position: Attribute, bad: Attribute, child: SparkPlan)
  extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def requiredChildDistribution: Seq[Distribution] = Seq(ClusteredDistribution(keys))
  override def requiredChildOrdering: Seq[Seq[SortOrder]] =
    Seq((keys :+ position).map(SortOrder(_, Ascending)))

  override protected def doExecute(): RDD[InternalRow] = {
    val (names, columns) = (keys, child.output)
    val isBad = columns.indexWhere(_.exprId == bad.exprId)
    child.execute().mapPartitionsInternal { rows =>
      val keyOf = GeneratedCode.projection(names, columns)
      val ahead = rows.buffered
      var key: UnsafeRow = null
      new Iterator[InternalRow] {
        override def hasNext: Boolean = ahead.hasNext
        override def next(): InternalRow = {
          var row = ahead.next() // the sort uses one row for all
          if (row.isNullAt(isBad)) {
            key = keyOf(row).copy()
            row = row.copy()
            while (ahead.hasNext && ahead.head.isNullAt(isBad) && keyOf(ahead.head) == key) {
              row = ahead.next().copy()
            }
          }
          row
        }
      }
    }
  }

  override protected def withNewChildInternal(c: SparkPlan): NewestByKeyExec = copy(child = c)
}
