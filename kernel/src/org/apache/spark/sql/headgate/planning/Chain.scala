package org.apache.spark.sql.headgate.planning

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._

/** A place where rows are counted: a step and one of its outputs. */
case class Counted(step: String, output: String)

/** First a condition (none: every row), then what is counted of the rows that pass it. */
case class Stage(condition: Option[Expression], counted: Option[Counted])

/**
 * Select and filter steps from a shared stream to one of its users, as expressions over the shared
 * stream's columns: the rows of a user can then be made from a shared row in one pass.
 */
case class Chain(stages: Seq[Stage], output: Seq[NamedExpression], values: Seq[Expression])

object Chain {
  /** The chain from `base` up to `top`; None if anything but select, filter and count lies between. */
  def of(top: LogicalPlan, base: LogicalPlan): Option[Chain] =
    if (top.eq(base) || top == base) Some(Chain(Nil, base.output, base.output))
    else top match {
      case Project(list, child) if list.forall(simple) =>
        of(child, base).map { below =>
          val known = substitution(below)
          Chain(below.stages, list.map(_.toAttribute), list.map {
            case a: Alias => replace(a.child, known)
            case e => replace(e, known)
          })
        }
      case Filter(condition, child) if simple(condition) =>
        of(child, base).map { below =>
          below.copy(stages = below.stages :+
            Stage(Some(replace(condition, substitution(below))), None))
        }
      case CountRows(child, step, counted) =>
        of(child, base).map { below =>
          below.copy(stages = below.stages :+ Stage(None, Some(Counted(step, counted))))
        }
      case SubqueryAlias(_, child) =>
        of(child, base).map { below =>
          below.copy(output = top.output)
        }
      case _ => None
    }

  private def substitution(c: Chain): AttributeMap[Expression] =
    AttributeMap(c.output.map(_.toAttribute).zip(c.values))

  private def replace(e: Expression, known: AttributeMap[Expression]): Expression =
    e.transform { case a: Attribute => known.getOrElse(a, a) }

  // a Python function needs a worker, a subquery its own plan: those go the ordinary way
  private def simple(e: Expression): Boolean = e.deterministic && !e.exists {
    case _: PythonFuncExpression | _: SubqueryExpression | _: Generator | _: WindowExpression => true
    case _ => false
  }
}
