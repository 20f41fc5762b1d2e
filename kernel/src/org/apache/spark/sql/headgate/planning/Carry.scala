package org.apache.spark.sql.headgate.planning

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, ExprId}
import org.apache.spark.sql.catalyst.plans.{Inner, LeftAnti, LeftOuter, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._

/** A column that goes along with rows through steps which neither see it nor select it. */
object Carry {
  /** The plan with the column; None if rows pass something that makes other rows of them. */
  def through(top: LogicalPlan, base: LogicalPlan, carried: Attribute): Option[LogicalPlan] = {
    def below(plan: LogicalPlan) = through(plan, base, carried)
    if (top.eq(base) || top == base) Some(base)
    else top match {
      case p: Project => below(p.child).map { child =>
        val kept = p.projectList.exists(_.exprId == carried.exprId)
        p.copy(projectList = if (kept) p.projectList else p.projectList :+ carried, child = child)
      }
      case g: Generate => below(g.child).map(child => g.copy(child = child))
      case u @ (_: Filter | _: SubqueryAlias | _: CountRows | _: ResolvedHint | _: Repartition |
          _: RepartitionByExpression) => below(u.children.head).map(c => u.withNewChildren(Seq(c)))
      case j @ Join(left, _, Inner | LeftOuter | LeftSemi | LeftAnti, _, _) =>
        below(left).map(l => j.copy(left = l))
      case _ => None
    }
  }

  /** What the rows of `top` call a column of `base` that they show as it is; None where rows could be lost. */
  def nameOf(top: LogicalPlan, base: LogicalPlan, column: Attribute): Option[String] = {
    def origin(plan: LogicalPlan, id: ExprId): Option[ExprId] =
      if (plan.eq(base) || plan == base) Some(id)
      else plan match {
        case p: Project => p.projectList.find(_.exprId == id).flatMap {
          case Alias(a: Attribute, _) => origin(p.child, a.exprId)
          case a: Attribute => origin(p.child, a.exprId)
          case _ => None
        }
        case u @ (_: SubqueryAlias | _: CountRows | _: ResolvedHint) => origin(u.children.head, id)
        case _ => None
      }
    top.output.find(a => origin(top, a.exprId).contains(column.exprId)).map(_.name)
  }
}
