package org.apache.spark.sql.headgate.planning

import org.apache.spark.sql.catalyst.expressions.Attribute
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
}
