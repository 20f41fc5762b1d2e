/** Owns Spark's own aggregation as a part of our plans. */
package org.apache.spark.sql.headgate.spark

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.{HashAggregateExec, ObjectHashAggregateExec}

object Aggregates {

  /** One step of an aggregation by hashes.
    *
    * @param by how the rows must be distributed, if they must
    * @param offset where the buffers are in the rows that come
    */
  def exec(mode: AggregateMode, by: Option[Seq[Expression]], partitions: Option[Int],
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
