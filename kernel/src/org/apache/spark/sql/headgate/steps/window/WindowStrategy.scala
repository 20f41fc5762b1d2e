package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.spark.{Aggregates, RunningBatch, Session}

/** Plans a [[KeyedWindow]] with its Aggregate: partial, shuffle by key, merge, and our operator. */
object WindowStrategy {
  def plan(session: Session, window: KeyedWindow, planLater: LogicalPlan => SparkPlan): SparkPlan = {
    val parts = window.parts
    import parts.{functions, grouping, results}
    val layout = KeyedWindow.layout(parts, window.keys, window.spec)
    require(layout.map(_.toJson) == window.stores.map(_.toJson),
      s"the optimizer changed the state of '${window.step}' from ${window.stores} to $layout")
    val batch = RunningBatch.of(session)
    val partitions = batch.fold(1)(_.statePartitions)
    val groups = grouping.map(_.toAttribute)
    val keys = groups.take(window.keys)
    val partial = Aggregates.exec(Partial, None, None, grouping, functions, 0, planLater(parts.rows))
    val merged = Aggregates.exec(PartialMerge, Some(keys), Some(partitions), groups, functions, groups.length, partial)
    val counted = results.last.references.head
    // conditions speak of the child's output: back to the attributes of the functions' results
    val conditions = window.conditions.map(_.transform { case a: Attribute =>
      results.find(_.exprId == a.exprId) match {
        case Some(Alias(e, _)) => e
        case _ => a
      }
    })
    KeyedWindowExec(merged, window.spec, keys, groups(window.keys), groups(window.keys + 1), functions,
      functions.indexWhere(_.resultAttribute.exprId == counted.exprId),
      results.drop(groups.length).init, conditions, window.lateRow, window.late, window.stores,
      window.shown, window.output, batch)
  }
}
