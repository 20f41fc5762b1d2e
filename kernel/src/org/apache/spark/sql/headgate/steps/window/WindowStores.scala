package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.headgate.spark.{KeyLayout, Sessions, StoreShape}
import org.apache.spark.sql.headgate.steps.core.Aggregation
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/**
 * How a window step keeps its state: a row for each key and open window, in order of time.
 * The other stores have the same key.
 */
object WindowStores {
  val Windows: String = StoreShape.DefaultName
  /** The windows with rows that no early row has shown yet; only with `every`. */
  val Changed = "changed"
  /** The sessions of each key, with their starts. */
  val Sessions = "sessions"

  /** What a window's row has beside the buffers of its aggregates. */
  val Since = "since"
  val Pane = "pane"
  val Flags = "flags"
  /** Of sessions only: other windows are known by their end. */
  val Start = "window_start"
  /** In the flags: the on-time row is out. The bits above are those of the conditions. */
  val OnTime = 1

  /**
   * @param functions the aggregate functions with the column that each was first used for: their
   *                  buffers have its name, so that an aggregate may move or others may join it
   */
  def of(keyTypes: Seq[DataType], functions: Seq[(AggregateExpression, String)],
      windowing: Windowing): Seq[StoreSpec] = {
    val keys = keyTypes.zipWithIndex.map { case (t, i) => StructField(s"key$i", t) }
    val key = StructType(keys :+ StructField("window_end", LongType, nullable = false))
    val start = StructField(Start, LongType)
    val values = row(functions).fields.toSeq ++ (if (windowing.session) Seq(start) else Nil)
    def store(name: String, value: Seq[StructField], layout: KeyLayout) =
      StoreSpec(name, key, StructType(value), layout, keys.indices)
    val byTime = KeyLayout.Time
    Seq(store(Windows, values, byTime)) ++
      (if (windowing.notes) Seq(store(Changed, Seq(StructField("none", BooleanType)), byTime)) else Nil) ++
      (if (windowing.session) Seq(store(Sessions, Seq(start), KeyLayout.Prefix(keys.length))) else Nil)
  }

  /** What is kept of a window but a session's start. */
  def row(functions: Seq[(AggregateExpression, String)]): StructType =
    StructType(Aggregation.columns(functions) ++ Seq(StructField(Since, LongType), StructField(Pane, IntegerType),
      StructField(Flags, IntegerType)))
}
