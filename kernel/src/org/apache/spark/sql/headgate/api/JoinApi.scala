/** Owns the join of two streams as Python calls it. */
package org.apache.spark.sql.headgate.api

import org.apache.spark.sql.{Column, DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.expressions.{Alias, AttributeReference}
import org.apache.spark.sql.catalyst.optimizer.CollapseProject
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.headgate.spark.Frames
import org.apache.spark.sql.headgate.steps.join.{Join, JoinSpec, JoinStores, PairTest}
import org.apache.spark.sql.types.{ByteType, LongType, TimestampType}

object JoinApi {

  /**
   * @param stream rows of both sides, with their keys, side, position, event time and row
   * @param pairs  an empty stream with the left row's columns and, as one struct, the right row
   * @param where  a condition over its columns; or null
   */
  def apply(stream: ApiFrame, specJson: String, pairs: ApiFrame, where: Column): ApiFrame = {
    val spec = JoinSpec.parse(specJson)
    val plan = Frames.plan(stream)
    def column(name: String) = Frames.column(plan, name)
    val keys = (0 until spec.keys).map(i => column(s"${JoinSpec.Key}$i"))
    val rows = Seq(JoinSpec.Left, JoinSpec.Right).map(i => column(s"${JoinSpec.Row}$i"))
    val Seq(left, right) = rows.map(_.dataType)
    val output = Seq(AttributeReference(spec.position, LongType)(), AttributeReference(spec.time, TimestampType)(),
      AttributeReference(JoinSpec.Output, ByteType)(), AttributeReference(JoinSpec.LeftRow, left)(),
      AttributeReference(JoinSpec.RightRow, right)())
    Frames.like(stream, Join(plan, spec, keys, column(JoinSpec.Input), column(spec.position), column(spec.time),
      plan.output.find(_.name == JoinSpec.Tie), rows, Option(where).map(test(pairs, _)),
      JoinStores.of(keys.map(_.dataType), left, right), output))
  }

  private def test(pairs: ApiFrame, where: Column): PairTest = {
    val session = Frames.session(pairs)
    // rows that the optimizer takes for some: of none it would make nothing
    val rows = Frames.ofRows(session, session.sparkContext.emptyRDD, pairs.schema)
    val made = flat(Frames.optimized(rows.select(where.as("met"))))
    made match {
      case Project(Seq(Alias(condition, _)), below) => new PairTest(condition, below.output)
      case other => throw new IllegalStateException(s"a condition became ${other.nodeName}")
    }
  }

  private def flat(plan: LogicalPlan): LogicalPlan = plan match {
    case Project(results, below: Project) => flat(below) match {
      case Project(inner, leaf) => Project(CollapseProject.buildCleanedProjectList(results, inner), leaf)
      case other => other
    }
    case other => other
  }
}
