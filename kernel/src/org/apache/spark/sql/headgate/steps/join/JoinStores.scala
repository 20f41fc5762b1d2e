package org.apache.spark.sql.headgate.steps.join

import org.apache.spark.sql.headgate.spark.{KeyLayout, StoreShape}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/**
 * How a join keeps its state: the rows of both sides in one store, ordered by a hash of their key, side
 * and time, so that those which may match are read by range; and the times at which rows of a key are to
 * be forgotten, in order.
 */
object JoinStores {
  val Rows: String = StoreShape.DefaultName
  val Due = "due"
  /** Columns of a row's key before those of the user: hash, side, time, number. */
  val Before = 4

  def of(keyTypes: Seq[DataType], left: DataType, right: DataType): Seq[StoreSpec] = {
    val keys = keyTypes.zipWithIndex.map { case (t, i) => StructField(s"key$i", t) }
    val order = StructType(Seq(StructField("__hg_hash", LongType, nullable = false),
      StructField("side", ByteType, nullable = false), StructField("event_time", LongType, nullable = false),
      StructField("number", LongType, nullable = false)))
    val value = StructType(Seq(StructField("left", left), StructField("right", right),
      StructField("matched", BooleanType, nullable = false)))
    val byTime = StructType(Seq(StructField("time", LongType, nullable = false),
      StructField("timer", IntegerType, nullable = false)) ++ keys)
    Seq(
      StoreSpec(Rows, StructType(order ++ keys), value, KeyLayout.Range(0 until Before), keys.indices.map(_ + Before)),
      StoreSpec(Due, byTime, StructType(StructField("none", BooleanType) :: Nil), KeyLayout.Range(Seq(0)),
        keys.indices.map(_ + 2)))
  }
}
