package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.{HashAggregateExec, ObjectHashAggregateExec}
import org.apache.spark.sql.headgate.spark.RunningBatch

/** Plans a [[KeyedWindow]] with its Aggregate: partial, shuffle by key, merge, and our operator. */
object WindowStrategy {
  def plan(session: SparkSession, window: KeyedWindow, planLater: LogicalPlan => SparkPlan): SparkPlan = {
    val aggregate = KeyedWindow.aggregation(window.child)
    val PhysicalAggregation(grouping, functions, results, child) = aggregate: @unchecked
    val layout = KeyedWindow.layout(aggregate, window.keys, window.spec)
    require(layout.map(_.toJson) == window.stores.map(_.toJson),
      s"the optimizer changed the state of '${window.step}' from ${window.stores} to $layout")
    val batch = RunningBatch.of(session)
    val partitions = batch.fold(1)(_.statePartitions)
    val groups = grouping.map(_.toAttribute)
    val keys = groups.take(window.keys)
    val partial = aggregated(Partial, None, None, grouping, functions, 0, planLater(child))
    val merged = aggregated(PartialMerge, Some(keys), Some(partitions), groups, functions, groups.length, partial)
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
      window.output, batch)
  }

  private def aggregated(mode: AggregateMode, by: Option[Seq[Expression]], partitions: Option[Int],
      grouping: Seq[NamedExpression], functions: Seq[AggregateExpression], offset: Int,
      child: SparkPlan): SparkPlan = {
    val made = functions.map(f => f.copy(mode = mode, filter = if (mode == Partial) f.filter else None))
    val output = grouping.map(_.toAttribute) ++ made.flatMap(_.aggregateFunction.inputAggBufferAttributes)
    val attributes = made.map(_.resultAttribute)
    val buffers = made.flatMap(_.aggregateFunction.aggBufferAttributes)
    // never a SortAggregateExec: a streaming plan is not sorted
    if (Aggregate.supportsHashAggregate(buffers, grouping))
      HashAggregateExec(by, by.isDefined, partitions, grouping, made, attributes, offset, output, child)
    else
      ObjectHashAggregateExec(by, by.isDefined, partitions, grouping, made, attributes, offset, output, child)
  }
}
