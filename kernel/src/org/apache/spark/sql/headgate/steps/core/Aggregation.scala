package org.apache.spark.sql.headgate.steps.core

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.optimizer.{CollapseProject, DecimalAggregates, ReplaceExpressions}
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, EventTimeWatermark, LogicalPlan, Project}
import org.apache.spark.sql.headgate.aggregates.Gathered
import org.apache.spark.sql.types._

/** What the optimizer makes of an Aggregate below a step of ours, and what of it is state. */
object Aggregation {
  /**
   * The aggregation below a step when the optimizer is done with it: to share a part of a function
   * (RewriteWithExpression, of count_if for instance) it moves results into a projection above it.
   */
  def below(child: LogicalPlan): Aggregate = child match {
    case aggregate: Aggregate => aggregate
    case Project(results, aggregate: Aggregate) => aggregate.copy(aggregateExpressions =
      CollapseProject.buildCleanedProjectList(results, aggregate.aggregateExpressions))
    case other => throw new IllegalStateException(s"a step over ${other.nodeName} instead of an aggregation")
  }

  /** The functions, the columns that are grouped by, and the results. */
  def parts(aggregate: Aggregate): (Seq[AggregateExpression], Seq[NamedExpression], Seq[NamedExpression]) = {
    // both rules change what a function keeps, and run on any node: do it as they will
    val PhysicalAggregation(grouping, made, results, _) =
      DecimalAggregates(ReplaceExpressions(aggregate)): @unchecked
    (made, grouping, results)
  }

  /** The functions of an aggregation, each with the result that it was first used for. */
  def named(functions: Seq[AggregateExpression],
      results: Seq[NamedExpression]): Seq[(AggregateExpression, String)] =
    functions.map { f =>
      (f, results.find(_.references.contains(f.resultAttribute)).fold("")(_.name))
    }

  /**
   * The buffers as columns of a store.
   *
   * @param functions with the column that each was first used for: their buffers have its name, so that
   *                  an aggregate may move or others may join it
   */
  def columns(functions: Seq[(AggregateExpression, String)]): Seq[StructField] = {
    val names = functions.flatMap { case (f, column) =>
      f.aggregateFunction match {
        // bytes of rows of other types would be taken for rows of these
        case g: Gathered => g.aggBufferAttributes.map(a => (s"$column.${g.buffered}", a.dataType))
        case other => other.aggBufferAttributes.map(a => (s"$column.${a.name}", a.dataType))
      }
    }
    names.zipWithIndex.map { case ((name, dataType), i) =>
      val before = names.take(i).count(_._1 == name)
      StructField(if (before == 0) name else s"${name}_${before + 1}", dataType)
    }
  }

  /** Spark wants a column with a watermark among those that a stream is grouped by. */
  def marked: Metadata = new MetadataBuilder().putLong(EventTimeWatermark.delayKey, 0L).build()
}

/** A key that all rows share. The optimizer must not see that: it drops constants from a grouping. */
case class OneKey() extends LeafExpression {
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = false
  override def foldable: Boolean = false
  override def eval(row: InternalRow): Any = true
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    ev.copy(code = EmptyBlock, isNull = FalseLiteral, value = TrueLiteral)
}
