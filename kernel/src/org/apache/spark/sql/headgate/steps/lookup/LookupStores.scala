package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.headgate.spark.{KeyLayout, StoreShape}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/** How a lookup keeps its state: the table's rows by key, and the stream's rows that wait. */
object LookupStores {
  val Rows: String = StoreShape.DefaultName
  val Waiting = "waiting"
  val Deadlines = "deadlines"
  /** The rows that hold the watermark, by their event time, with their deadlines. */
  val Times = "event_times"
  /** The table's rows by the time from which they are forgotten. */
  val Expiry = "expiry"

  def waitingColumns(left: Seq[Attribute], rider: Option[Attribute]): Seq[Attribute] =
    left.filterNot(a => rider.exists(_.semanticEquals(a)))

  def of(rightKeys: Seq[Attribute], value: Attribute, missing: Missing, left: Seq[Attribute],
      rider: Option[Attribute], held: Option[Attribute], forgets: Boolean,
      replicated: Boolean): Seq[StoreSpec] = {
    val keyFields = rightKeys.zipWithIndex.map { case (k, i) => StructField(s"key$i", k.dataType) }
    val key = StructType(keyFields)
    val none = StructType(StructField("none", BooleanType) :: Nil)
    val row = StructField("row", value.dataType)
    // a table that forgets nothing is kept without the time, and without the store in its order
    val columns = if (forgets) Seq(row, StructField("expires", TimestampType)) else Seq(row)
    val rows = StoreSpec(Rows, key, StructType(columns), KeyLayout.Plain, key.indices, replicated = replicated)
    val expiry = if (!forgets) None else Some(StoreSpec(Expiry,
      StructType(StructField("expires", LongType, nullable = false) +: keyFields), none,
      KeyLayout.Range(Seq(0)), key.indices.map(_ + 1), replicated = replicated))
    if (!missing.isInstanceOf[Missing.Wait]) Seq(rows) ++ expiry
    else {
      val deadline = StructField("deadline", LongType, nullable = false)
      val number = StructField("number", LongType, nullable = false)
      val byKey = StructType(keyFields ++ Seq(deadline, number))
      val byTime = StructType(Seq(deadline, number) ++ keyFields)
      val columns = waitingColumns(left, rider).map(a => StructField(a.name, a.dataType))
      Seq(rows,
        StoreSpec(Waiting, byKey, StructType(columns),
          KeyLayout.Prefix(key.length), key.indices),
        StoreSpec(Deadlines, byTime, none, KeyLayout.Range(Seq(0)),
          key.indices.map(_ + 2))) ++ held.map { _ =>
        val byEvent = StructType(Seq(StructField("time", LongType, nullable = false), number) ++ keyFields)
        StoreSpec(Times, byEvent, StructType(deadline :: Nil),
          KeyLayout.Range(Seq(0)), key.indices.map(_ + 2))
      } ++ expiry
    }
  }
}
