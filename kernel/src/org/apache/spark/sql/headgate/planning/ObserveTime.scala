/** Owns the place in the plan where a source's rows show their event time. */
package org.apache.spark.sql.headgate.planning

import java.lang.{Long => JLong}

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.time.JobTimes
import org.apache.spark.util.AccumulatorV2

/** Rows pass as they are; the newest event time among them is kept for the job's watermark. */
case class ObserveTime(child: LogicalPlan, source: String, at: Attribute) extends UnaryNode {
  override def output: Seq[Attribute] = child.output
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

/** How many rows came, and the newest of their times in microseconds; a retried task changes nothing
  * of whether there were any, nor of the newest. */
final class NewestTime extends AccumulatorV2[JLong, JLong] {
  private var count = 0L
  private var newest = Long.MinValue

  def saw(): Unit = count += 1
  def saw(micros: Long): Unit = { count += 1; if (micros > newest) newest = micros }

  def rows: Long = count
  def newestMs: Option[Long] = if (newest == Long.MinValue) None else Some(Math.floorDiv(newest, 1000L))

  override def add(micros: JLong): Unit = saw(micros.longValue)
  override def isZero: Boolean = count == 0
  override def reset(): Unit = { count = 0; newest = Long.MinValue }
  override def copy(): NewestTime = { val c = new NewestTime; c.count = count; c.newest = newest; c }
  override def merge(other: AccumulatorV2[JLong, JLong]): Unit = other match {
    case o: NewestTime => count += o.count; newest = math.max(newest, o.newest)
    case o => throw new IllegalArgumentException(s"not a NewestTime: ${o.getClass.getName}")
  }
  override def value: JLong = newest
}
