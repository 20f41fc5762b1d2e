/** Owns the column by which rows of sinks that are not sorted keep their order. */
package org.apache.spark.sql.headgate.sinks.core

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.types.{DataType, LongType}

/** How many rows of the task came before. Spark has its like, but refuses it in streams. */
case class RowPlace() extends LeafExpression with Nondeterministic with CodegenFallback {
  @transient private var next: Long = _

  override def stateful: Boolean = true
  override def nullable: Boolean = false
  override def dataType: DataType = LongType
  override protected def initializeInternal(partitionIndex: Int): Unit = next = 0L
  override protected def evalInternal(row: InternalRow): Any = {
    next += 1
    next - 1
  }
}

object RowPlaces {

  /** The writer's rows with `__hg_order`: null for rows of sinks that are sorted by their contents.
    *
    * @param others the numbers of the sinks that are not
    */
  def add(rows: LogicalPlan, others: Seq[Int]): LogicalPlan = {
    val sink = rows.output.find(_.name == SinkSpec.SinkColumn).get
    val place = If(In(sink, others.map(Literal(_))), RowPlace(), Literal(null, LongType))
    Project(rows.output :+ Alias(place, SinkSpec.OrderColumn)(), rows)
  }
}
