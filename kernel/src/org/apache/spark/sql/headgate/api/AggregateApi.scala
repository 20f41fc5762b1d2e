/** Owns running aggregates as Python calls them. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Column, DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter}
import org.apache.spark.sql.functions.{col, max}
import org.apache.spark.sql.headgate.aggregates.Replayable
import org.apache.spark.sql.headgate.spark.Frames
import org.apache.spark.sql.headgate.steps.aggregate.{AggregateSpec, AggregateStores, RunningAggregate}
import org.apache.spark.sql.headgate.steps.core.{Aggregation, KnownFunctions, OneKey}
import org.apache.spark.sql.types.BooleanType

object AggregateApi {
  private val One = "__hg_one"
  private val Newest = "__hg_newest"

  /**
   * @param keys    columns of the stream
   * @param names   what the keys are called in the results
   * @param time    the column with the event time, if the ttl goes by it
   * @param having  which results are there, over the names of keys and aggregates; null: all
   * @param deleted what the column is called that is true in a row that deletes
   */
  def apply(stream: ApiFrame, spec: String, keys: JList[String], names: JList[String], time: String,
      aggregates: JList[Column], having: Column, deleted: String): ApiFrame = {
    val parsed = AggregateSpec.parse(spec)
    val keyNames = keys.asScala.toSeq
    val newest = if (parsed.byEventTime) Seq(max(Grouped.quoted(time)).as(Newest)) else Nil
    val made = Grouped(stream.select(col("*"), Frames.column(OneKey()).as(One, Aggregation.marked)),
      keyNames :+ One, Grouped.seen(stream, aggregates) ++ newest)
    val aggregate = Aggregation.identified(Replayable(Frames.plan(made).asInstanceOf[Aggregate], Nil))
    val results = aggregate.output.drop(keyNames.length + 1)
    val shown = if (parsed.byEventTime) results.init else results
    val output = aggregate.output.zip(names.asScala).map { case (a, name) => AttributeReference(name, a.dataType)() } ++
      shown.map(a => AttributeReference(a.name, a.dataType)()) :+
      AttributeReference(deleted, BooleanType, nullable = false)()
    val parts = Aggregation.parts(aggregate)
    val node = RunningAggregate(aggregate, parsed, keyNames.length, AggregateStores.of(parts, keyNames.length, parsed),
      new KnownFunctions(parts.named), None, output)
    val condition = Option(having).map { c =>
      val filter = Frames.plan(Frames.like(made, node).filter(c)).collectFirst { case f: Filter => f.condition }.get
      BindReferences.bindReference(filter, output)
    }
    Frames.like(made, node.copy(having = condition))
  }
}
