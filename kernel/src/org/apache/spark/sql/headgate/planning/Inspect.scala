package org.apache.spark.sql.headgate.planning

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateFunction, CollectSet, Mode}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.StructType

/** A function whose value is the same whenever a batch is replayed, whatever it is called. */
trait Replays

/** Looks at a user's plan before anything runs. */
object Inspect {
  /** No rows, of a stream: steps are analysed on it while the graph is built. */
  def prototype(schema: StructType): LogicalPlan = LocalRelation(
    schema.map(f => AttributeReference(f.name, f.dataType, nullable = true)()), Nil, isStreaming = true)

  /** What keeps state in the plan, in words, or null. */
  def stateful(plan: LogicalPlan): String = {
    var found: String = null
    plan.foreach { p =>
      val what = p match {
        case _ if !p.isStreaming => null
        case _: Aggregate => "an aggregation (groupBy, agg or count)"
        case _: Deduplicate | _: DeduplicateWithinWatermark => "dropDuplicates"
        case _: Distinct => "distinct"
        case j: Join if j.left.isStreaming && j.right.isStreaming => "a join of two streams"
        case _: Window => "a window function"
        case _: Sort => "a sort"
        case _: GlobalLimit | _: LocalLimit | _: Offset | _: Tail => "a limit"
        case _: FlatMapGroupsWithState | _: TransformWithState | _: FlatMapGroupsInPandasWithState |
             _: TransformWithStateInPySpark => "a stateful function"
        case _: Except | _: Intersect => "a set operation"
        case _: EventTimeWatermark => "withWatermark"
        case _ => null
      }
      if (found == null && what != null) found = what
    }
    found
  }

  /** An expression that gives another value when a batch is replayed, or null. */
  def nondeterministic(plan: LogicalPlan): String = {
    var found: Expression = null
    plan.foreach(_.expressions.foreach(_.foreach { e =>
      if (found == null && changes(e)) found = e
    }))
    if (found == null) null else found.sql
  }

  /** Functions whose value depends on the order in which a shuffle delivers rows; windows put others in the place
    * of most of them. */
  private val Ordered = Set("first", "first_value", "last", "last_value", "any_value", "collect_list",
    "array_agg", "listagg", "string_agg", "max_by", "min_by", "histogram_numeric", "approx_top_k",
    "approx_top_k_accumulate", "approx_top_k_combine", "kll_sketch_agg_bigint", "kll_sketch_agg_float",
    "kll_sketch_agg_double", "kll_merge_agg_bigint", "kll_merge_agg_float", "kll_merge_agg_double")

  private def changes(e: Expression): Boolean = e match {
    case _: CollectSet => false // windows sort it
    case _: Replays => false
    case f: AggregateFunction if Ordered(f.prettyName) => true
    case m: Mode => m.reverseOpt.isEmpty
    case _ => !e.deterministic && e.children.forall(_.deterministic)
  }

  private val SourceAlias = "__hg_source:"

  /** Spark writes one offset a streaming leaf, in this order (MicroBatchExecution.sources). */
  def sourceOrder(top: LogicalPlan): Seq[String] = {
    def walk(plan: LogicalPlan, name: String): Seq[String] = plan match {
      case SubqueryAlias(id, child) if id.name.startsWith(SourceAlias) =>
        walk(child, id.name.stripPrefix(SourceAlias))
      case leaf if leaf.children.isEmpty => if (leaf.isStreaming) Seq(name) else Nil
      case other => other.children.flatMap(walk(_, name))
    }
    walk(top, "")
  }
}
