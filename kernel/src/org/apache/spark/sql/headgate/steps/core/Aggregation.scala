package org.apache.spark.sql.headgate.steps.core

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction}
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.optimizer.{CollapseProject, DecimalAggregates, ReplaceExpressions}
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, EventTimeWatermark, LogicalPlan, Project}
import org.apache.spark.sql.headgate.aggregates.Gathered
import org.apache.spark.sql.types._

/**
 * @param grouping the columns that are grouped by
 * @param named    the functions, each once, with the result that it was first used for
 * @param results  over the functions' result attributes and the grouping
 * @param rows     what is aggregated
 */
case class AggregationParts(grouping: Seq[NamedExpression], named: Seq[(AggregateExpression, String)],
    results: Seq[NamedExpression], rows: LogicalPlan) {
  val functions: Seq[AggregateExpression] = named.map(_._1)
}

/** The functions of a step when its graph was built; the optimizer does not look into this. */
final class KnownFunctions(val named: Seq[(AggregateExpression, String)]) extends Serializable

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

  /**
   * The aggregation with one id for functions that are one: those that are alike now, when the graph is built.
   * What the optimizer makes alike later has states of its own, which stay apart.
   */
  def identified(aggregate: Aggregate): Aggregate = {
    val first = mutable.Map.empty[Expression, ExprId]
    val ids = simplified(aggregate).aggregateExpressions.flatMap(_.collect {
      case a: AggregateExpression if a.deterministic => a.resultId -> first.getOrElseUpdate(a.canonicalized, a.resultId)
    }).toMap
    aggregate.copy(aggregateExpressions = aggregate.aggregateExpressions.map(_.transform {
      case a: AggregateExpression => a.copy(resultId = ids.getOrElse(a.resultId, a.resultId))
    }.asInstanceOf[NamedExpression]))
  }

  /** An aggregation taken apart as Spark's PhysicalAggregation does it, but that ids say which functions are one. */
  def parts(aggregate: Aggregate): AggregationParts = {
    val (functions, grouping, results, rows) = apart(aggregate)
    AggregationParts(grouping, functions.map { f =>
      (f, results.find(_.references.contains(f.resultAttribute)).fold("")(_.name))
    }, results, rows)
  }

  /** What the optimizer has made of an aggregation with these functions. */
  def parts(aggregate: Aggregate, known: KnownFunctions): AggregationParts = {
    val (functions, grouping, results, rows) = apart(aggregate)
    val found = functions.map(f => f.resultId -> f).toMap
    AggregationParts(grouping, known.named.map { case (f, name) => (found.getOrElse(f.resultId, idle(f)), name) },
      results, rows)
  }

  /** A function whose value the optimizer knows, as that of count(NULL): nobody asks for it, but state has its buffers. */
  private def idle(known: AggregateExpression): AggregateExpression = {
    val f = known.aggregateFunction
    known.copy(filter = None, aggregateFunction =
      f.withNewChildren(f.children.map(c => Literal(null, c.dataType))).asInstanceOf[AggregateFunction])
  }

  private def apart(made: Aggregate) = {
    val aggregate = simplified(made)
    val functions = aggregate.aggregateExpressions
      .flatMap(_.collect { case a: AggregateExpression => a }).distinctBy(_.resultId)
    val attributes = functions.map(f => f.resultId -> f.resultAttribute).toMap
    val PhysicalAggregation(grouping, _, results, rows) =
      aggregate.copy(aggregateExpressions = aggregate.aggregateExpressions.map(_.transform {
        case a: AggregateExpression => attributes(a.resultId)
      }.asInstanceOf[NamedExpression])): @unchecked
    (functions, grouping, results, rows)
  }

  // both rules change what a function keeps, and run on any node: do it as they will
  private def simplified(aggregate: Aggregate): Aggregate =
    DecimalAggregates(ReplaceExpressions(aggregate)).asInstanceOf[Aggregate]

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
