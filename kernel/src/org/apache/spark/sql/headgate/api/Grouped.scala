/** Owns a user's aggregates over a stream that has columns which users do not see. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Column, DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.headgate.spark.Frames

object Grouped {
  private val Hidden = "__hg_"

  /** These aggregates, resolved over the columns that users see: a star in one means those. */
  def seen(stream: ApiFrame, aggregates: JList[Column]): Seq[Column] = {
    val all = aggregates.asScala.toSeq
    val visible = stream.select(
      Frames.plan(stream).output.filterNot(_.name.startsWith(Hidden)).map(Frames.column(_)): _*)
    Frames.plan(visible.groupBy().agg(all.head, all.tail: _*)) match {
      case aggregate: Aggregate => aggregate.aggregateExpressions.map(Frames.column)
      case _ => all
    }
  }

  def apply(rows: ApiFrame, by: Seq[String], aggregates: Seq[Column]): ApiFrame =
    rows.groupBy(by.map(quoted): _*).agg(aggregates.head, aggregates.tail: _*)

  def quoted(name: String): Column = col(s"`$name`")
}
