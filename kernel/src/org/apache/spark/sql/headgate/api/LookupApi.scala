/** Owns the lookup step as Python calls it. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.headgate.planning.SplitBuilder
import org.apache.spark.sql.headgate.spark.Frames
import org.apache.spark.sql.headgate.steps.lookup.{AsOf, Lookup, Missing}

object LookupApi {
  import Frames.column

  /**
   * @param table columns: the keys, then `value`; `position` and `deleted` may be null
   * @param missing null, drop, side or wait:MILLISECONDS
   * @param held    the stream's event time, if rows that wait hold the watermark; else null
   * @param ttlMs   after how much time without an update a table row is forgotten; 0: never
   * @param rowTime the table's event time, if the ttl goes by it; else null
   * @param replicated whether every partition keeps the whole table, and the stream is not shuffled
   */
  def apply(stream: ApiFrame, table: ApiFrame, step: String, streamKeys: JList[String],
      tableKeys: JList[String], value: String, position: String, deleted: String, into: String,
      missing: String, held: String, ttlMs: Long, rowTime: String, replicated: Boolean): ApiFrame = {
    val left = Frames.plan(stream)
    val right = Frames.plan(table)
    val stored = column(right, value)
    Frames.like(stream, Lookup(left, right, step,
      streamKeys.asScala.map(column(left, _)).toSeq, tableKeys.asScala.map(column(right, _)).toSeq,
      stored, Option(position).map(column(right, _)), Option(deleted).map(column(right, _)),
      AttributeReference(into, stored.dataType)(), Missing.parse(missing),
      left.output.find(_.name == SplitBuilder.Out), Option(held).map(column(left, _)),
      Some(ttlMs).filter(_ > 0), Option(rowTime).map(column(right, _)), replicated))
  }

  /**
   * The version of the table's row that was valid at a time of the stream's.
   *
   * @param at       the stream's column with that time
   * @param tableName whose own watermark decides how long a row waits
   * @param keepMs   how long behind the job's watermark versions are kept
   * @param rowTime  the table's column with the time from which a version is valid
   */
  def asOf(stream: ApiFrame, table: ApiFrame, step: String, tableName: String, keepMs: Long,
      streamKeys: JList[String], at: String, tableKeys: JList[String], value: String, position: String,
      deleted: String, rowTime: String, into: String, missing: String, held: String): ApiFrame = {
    val left = Frames.plan(stream)
    val right = Frames.plan(table)
    val stored = column(right, value)
    Frames.like(stream, AsOf(left, right, step, tableName, keepMs,
      streamKeys.asScala.map(column(left, _)).toSeq, column(left, at),
      tableKeys.asScala.map(column(right, _)).toSeq, stored, column(right, position), column(right, deleted),
      column(right, rowTime), AttributeReference(into, stored.dataType)(), Missing.parse(missing),
      left.output.find(_.name == SplitBuilder.Out), Option(held).map(column(left, _))))
  }
}
