/** Owns the deduplication of a stream as Python calls it. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.headgate.spark.Frames
import org.apache.spark.sql.headgate.steps.dedupe.Dedupe
import org.apache.spark.sql.types.BooleanType

object DedupeApi {

  /**
   * @param order  columns by which the rows of a key come
   * @param time   the column with the event time; null if keys are forgotten by the clock
   * @param within in microseconds; 0: keys are never forgotten
   * @param mark   what the column is called that is true in duplicates
   */
  def apply(stream: ApiFrame, step: String, keys: JList[String], order: JList[String], time: String, within: Long,
      mark: String): ApiFrame = {
    val plan = Frames.plan(stream)
    def columns(names: JList[String]) = names.asScala.map(Frames.column(plan, _)).toSeq
    Frames.like(stream, Dedupe(plan, step, columns(keys), columns(order), Option(time).map(Frames.column(plan, _)),
      within, AttributeReference(mark, BooleanType, nullable = false)()))
  }
}
