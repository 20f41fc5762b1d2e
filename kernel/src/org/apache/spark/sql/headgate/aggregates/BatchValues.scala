/** Owns what expressions of a step see of the batch that they are evaluated in. */
package org.apache.spark.sql.headgate.aggregates

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.headgate.spark.DiffersByBatch
import org.apache.spark.sql.types._

/**
 * The number and time of a batch, set on the driver before the tasks are sent. An object among the
 * references of generated code, never a literal: the code is compiled once, not once a batch.
 */
class BatchValues(val step: String) extends Serializable {
  @volatile var number: Long = 0L
  /** Processing time in microseconds: the batch's time in the offset log. */
  @volatile var time: Long = 0L
  override def equals(o: Any): Boolean = o match {
    case b: BatchValues => b.getClass == getClass && b.step == step
    case _ => false
  }
  override def hashCode: Int = step.hashCode
}

abstract class BatchValue extends LeafExpression with DiffersByBatch {
  protected def member: String
  def batch: BatchValues
  override def nullable: Boolean = false
  override def foldable: Boolean = false
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val values = ctx.addReferenceObj("batch", batch, classOf[BatchValues].getName)
    ev.copy(code = EmptyBlock, isNull = FalseLiteral, value = JavaCode.expression(s"$values.$member()", dataType))
  }
}

/** The number of the batch, which grows as long as the job lives and is the same in a replay. */
case class BatchNumber(batch: BatchValues) extends BatchValue {
  override protected def member: String = "number"
  override def dataType: DataType = LongType
  override def eval(row: InternalRow): Any = batch.number
}

case class BatchTime(batch: BatchValues) extends BatchValue {
  override protected def member: String = "time"
  override def dataType: DataType = TimestampType
  override def eval(row: InternalRow): Any = batch.time
}
