package org.apache.spark.sql.headgate.aggregates

import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate
import org.apache.spark.sql.catalyst.trees.BinaryLike
import org.apache.spark.sql.headgate.planning.Replays
import org.apache.spark.sql.types.DataType

/**
 * Spark's max_by and min_by, but of several rows with the same extreme the one with the greatest or the
 * least value, whatever the order in which they come. What is kept is what Spark's keep.
 */
case class TiedBy(value: Expression, by: Expression, greatest: Boolean) extends DeclarativeAggregate
    with BinaryLike[Expression] with Replays {
  override def left: Expression = value
  override def right: Expression = by
  override def nullable: Boolean = true
  override def dataType: DataType = value.dataType
  override def prettyName: String = if (greatest) "max_by" else "min_by"

  private lazy val best = AttributeReference("extremumOrdering", by.dataType)()
  private lazy val kept = AttributeReference("valueWithExtremumOrdering", value.dataType)()
  override lazy val aggBufferAttributes: Seq[AttributeReference] = Seq(kept, best)
  override lazy val initialValues: Seq[Literal] =
    Seq(Literal.create(null, value.dataType), Literal.create(null, by.dataType))

  private def beyond(one: Expression, other: Expression) =
    if (greatest) GreaterThan(one, other) else LessThan(one, other)

  /** Whether another pair takes the place of the one that is kept; a null is the last among values. */
  private def replaces(oldValue: Expression, oldBy: Expression, newValue: Expression, newBy: Expression): Expression =
    And(IsNotNull(newBy), Or(Or(IsNull(oldBy), beyond(newBy, oldBy)), And(EqualTo(newBy, oldBy),
      And(IsNotNull(newValue), Or(IsNull(oldValue), beyond(newValue, oldValue))))))

  override lazy val updateExpressions: Seq[Expression] = {
    val better = replaces(kept, best, value, by)
    Seq(If(better, value, kept), If(better, by, best))
  }

  override lazy val mergeExpressions: Seq[Expression] = {
    val better = replaces(kept.left, best.left, kept.right, best.right)
    Seq(If(better, kept.right, kept.left), If(better, best.right, best.left))
  }

  override lazy val evaluateExpression: Expression = kept

  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): TiedBy =
    copy(value = newLeft, by = newRight)
}
