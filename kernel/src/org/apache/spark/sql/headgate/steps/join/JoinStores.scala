package org.apache.spark.sql.headgate.steps.join

import org.apache.spark.sql.headgate.spark.{KeyLayout, StoreShape}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/**
 * How a join keeps its state: the rows of a key, of both sides and by time, in one value, so that one read and
 * one write serve all that a key gets in a batch. When they are many, the oldest go to blocks, values of
 * their own, and the key's first value, its head, says which times these have. A second store has the
 * time at which each key is to be looked at, in order.
 */
object JoinStores {
  val Rows: String = StoreShape.DefaultName
  val Due = "due"
  /** The number of the head; those of blocks are greater. */
  val Head = 0
  // columns of the value
  val Blocks = 2
  val DueAt = 3
  val Columns = 4

  def of(keyTypes: Seq[DataType], left: DataType, right: DataType): Seq[StoreSpec] = {
    val keys = keyTypes.zipWithIndex.map { case (t, i) => StructField(s"key$i", t) }
    val byBlock = StructType(keys :+ StructField("block", IntegerType, nullable = false))
    def rows(of: DataType) = ArrayType(StructType(Seq(StructField("event_time", LongType),
      StructField("number", LongType), StructField("matched", BooleanType), StructField("row", of))))
    val block = StructType(Seq(StructField("side", ByteType), StructField("block", IntegerType),
      StructField("first", LongType), StructField("last", LongType), StructField("rows", IntegerType)))
    val value = StructType(Seq(StructField("left", rows(left)), StructField("right", rows(right)),
      StructField("blocks", ArrayType(block)), StructField("due", LongType)))
    val byTime = StructType(Seq(StructField("time", LongType, nullable = false),
      StructField("timer", IntegerType, nullable = false)) ++ keys)
    Seq(
      StoreSpec(Rows, byBlock, value, KeyLayout.Prefix(keys.length), keys.indices),
      StoreSpec(Due, byTime, StructType(StructField("none", BooleanType) :: Nil), KeyLayout.Range(Seq(0)),
        keys.indices.map(_ + 2)))
  }
}
