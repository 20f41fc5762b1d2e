/** Owns aggregates whose value does not depend on the order in which a shuffle gives rows. */
package org.apache.spark.sql.headgate.aggregates

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer.EliminateDistinct
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.headgate.store.NormalKeys
import org.apache.spark.sql.types._

/**
 * Puts functions of ours in the place of those whose value a replayed batch might not find again, and of
 * distinct aggregates, which Spark computes by expanding its plan and not in streams.
 */
object Replayable {
  /**
   * @param order columns of the aggregation's child by which rows came, the first ones first; where none are known,
   *              functions that go by them stay what they are
   */
  def apply(aggregate: Aggregate, order: Seq[Expression]): Aggregate = {
    val plan = EliminateDistinct(aggregate).asInstanceOf[Aggregate]
    plan.copy(aggregateExpressions =
      plan.aggregateExpressions.map(_.transformUp(rewriting(order)).asInstanceOf[NamedExpression]))
  }

  /** Whether a value depends on the places of rows. */
  def needsOrder(e: Expression): Boolean = e match {
    case _: First | _: Last | _: AnyValue | _: CollectList => true
    case l: ListAgg => l.needSaveOrderValue || !l.orderingFilled
    case _ => false
  }

  /** Why a distinct aggregate cannot be had, or null. */
  def problem(e: Expression): String = e match {
    case a @ AggregateExpression(_: RuntimeReplaceableAggregate, _, true, _, _) =>
      s"${a.sql} is a distinct aggregate of a function that Spark makes of others"
    case a @ AggregateExpression(f, _, true, _, _) =>
      f.children.find(c => !UnsafeRowUtils.isBinaryStable(c.dataType))
        .map(c => s"${a.sql} is a distinct aggregate of ${c.dataType.sql}").orNull
    case _ => null
  }

  private def rewriting(order: Seq[Expression]): PartialFunction[Expression, Expression] = {
    case a @ AggregateExpression(First(value, ignoreNulls), _, _, _, _) if order.nonEmpty => nearest(a, value, ignoreNulls, order, Min(_))
    case a @ AggregateExpression(AnyValue(value, ignoreNulls), _, _, _, _) if order.nonEmpty => nearest(a, value, ignoreNulls, order, Min(_))
    case a @ AggregateExpression(Last(value, ignoreNulls), _, _, _, _) if order.nonEmpty => nearest(a, value, ignoreNulls, order, Max(_))
    case a if isSet(a) => SortArray(a, Literal.TrueLiteral)
    case a @ AggregateExpression(f, _, true, _, _) =>
      val (inputs, of) = apart(f, 0)
      a.copy(aggregateFunction = Gathered(inputs.map(NormalKeys.of), of, 0), isDistinct = false)
    case a @ AggregateExpression(f, _, false, _, _) if order.nonEmpty && needsOrder(f) =>
      val (inputs, of) = apart(f, order.length)
      a.copy(aggregateFunction = Gathered(order ++ inputs, of, order.length))
    case MaxBy(value, by) if RowOrdering.isOrderable(value.dataType) => TiedBy(value, by, greatest = true)
    case MinBy(value, by) if RowOrdering.isOrderable(value.dataType) => TiedBy(value, by, greatest = false)
    case m @ Mode(value, _, _, None) if RowOrdering.isOrderable(value.dataType) => m.copy(reverseOpt = Some(true))
  }

  private def isSet(e: Expression): Boolean = e match {
    case AggregateExpression(set: CollectSet, _, _, _, _) => RowOrdering.isOrderable(set.child.dataType)
    case _ => false
  }

  /** The value of the first row, or the last: with its place it is the least, or the greatest, of all. */
  private def nearest(a: AggregateExpression, value: Expression, ignoreNulls: Boolean, order: Seq[Expression],
      extreme: Expression => AggregateFunction): Expression = {
    val known = if (ignoreNulls) Some(IsNotNull(value)) else None
    val filter = (a.filter ++ known).reduceOption(And)
    def packed(columns: Seq[Expression]) = CreateNamedStruct(columns.zipWithIndex.flatMap { case (c, i) =>
      Seq(Literal(s"_$i"), c)
    })
    if (RowOrdering.isOrderable(value.dataType)) {
      val found = a.copy(aggregateFunction = extreme(packed(order :+ value)), isDistinct = false, filter = filter)
      GetStructField(found, order.length)
    } else {
      val isLast = extreme(value).isInstanceOf[Max]
      val by = if (isLast) MaxBy(value, packed(order)) else MinBy(value, packed(order))
      a.copy(aggregateFunction = by, isDistinct = false, filter = filter)
    }
  }

  /** A function's inputs, and the function over references to them; what is the same in all rows stays there. */
  private def apart(f: AggregateFunction, from: Int): (Seq[Expression], AggregateFunction) = {
    val inputs = mutable.ArrayBuffer.empty[Expression]
    def reference(e: Expression): Expression =
      if (e.foldable) e
      else {
        val there = inputs.indexWhere(_.semanticEquals(e))
        val at = if (there >= 0) there else { inputs += e; inputs.length - 1 }
        BoundReference(from + at, e.dataType, e.nullable)
      }
    val of = f.withNewChildren(f.children.map {
      case s: SortOrder => s.copy(child = reference(s.child), sameOrderExpressions = Nil)
      case other => reference(other)
    }).asInstanceOf[AggregateFunction]
    (inputs.toSeq, of)
  }
}
