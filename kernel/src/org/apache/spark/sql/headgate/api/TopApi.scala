/** Owns the first rows of each key as Python calls them. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Column, DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.Sort
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.headgate.spark.Frames
import org.apache.spark.sql.headgate.steps.top.TopRows
import org.apache.spark.sql.types.{BooleanType, IntegerType}

object TopApi {
  /**
   * @param keys  columns of the stream
   * @param names which of the row's columns the keys are
   * @param ids   if the stream is one of changes: the columns by which one replaces another; else empty
   * @param row   the columns that leave
   * @param place columns by which rows come that are alike in `by`
   * @param deleted what the column is called that is true in a row that deletes, here and in the stream
   */
  def apply(stream: ApiFrame, step: String, n: Int, keys: JList[String], names: JList[String], ids: JList[String],
      row: JList[String], place: JList[String], by: JList[Column], rank: String, deleted: String): ApiFrame = {
    val plan = Frames.plan(stream)
    def columns(of: JList[String]) = of.asScala.map(Frames.column(plan, _)).toSeq
    val shown = columns(row)
    val all = by.asScala.toSeq ++ place.asScala.map(name => col(s"`$name`"))
    val order = Frames.plan(stream.sort(all: _*)).collectFirst { case s: Sort => s.order }.get
    val output = shown.map(a => AttributeReference(a.name, a.dataType)()) ++ Seq(
      AttributeReference(rank, IntegerType, nullable = false)(),
      AttributeReference(deleted, BooleanType, nullable = false)())
    Frames.like(stream, TopRows(plan, step, n, columns(keys), columns(ids),
      if (ids.isEmpty) None else Some(Frames.column(plan, deleted)), shown ++ columns(place), order, shown.length,
      row.asScala.map(names.indexOf(_)).toSeq, output))
  }
}
