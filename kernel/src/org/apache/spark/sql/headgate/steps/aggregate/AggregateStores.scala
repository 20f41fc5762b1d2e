package org.apache.spark.sql.headgate.steps.aggregate

import org.apache.spark.sql.headgate.spark.{KeyLayout, StoreShape}
import org.apache.spark.sql.headgate.steps.core.{Aggregation, AggregationParts}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/** How a running aggregate keeps its state: the buffers of each key. */
object AggregateStores {
  val Keys: String = StoreShape.DefaultName
  /** By when keys are to be looked at because of their ttl; only with a ttl. */
  val Due = "due"
  /** The keys with rows that no update has told yet; only with `emit`. */
  val Changed = "changed"

  /** In the flags: the key has a row in the results, and has changed since. */
  val Shown = 1
  val Noted = 2
  /** Until when a key is kept that is kept for ever, or whose rows came before there was a time; stored as null. */
  val Unknown: Long = Long.MaxValue
  /** What a key's row has beside the buffers of its aggregates. */
  val Book: Seq[StructField] = Seq(StructField("flags", IntegerType), StructField("expires", TimestampType))

  /** The layout of the state of such an aggregation, before or after the optimizer saw it. */
  def of(aggregation: AggregationParts, keys: Int, spec: AggregateSpec): Seq[StoreSpec] = {
    val parts = aggregation.grouping.take(keys).zipWithIndex.map { case (k, i) => StructField(s"key$i", k.dataType) }
    val values = Aggregation.columns(aggregation.named) ++ Book
    val none = StructType(StructField("none", BooleanType) :: Nil)
    val byTime = StructType(Seq(StructField("time", LongType, nullable = false),
      StructField("timer", IntegerType, nullable = false)) ++ parts)
    Seq(StoreSpec(Keys, StructType(parts), StructType(values), KeyLayout.Plain, parts.indices)) ++
      (if (spec.ttl > 0) Seq(StoreSpec(Due, byTime, none, KeyLayout.Range(Seq(0)), parts.indices.map(_ + 2))) else Nil) ++
      (if (spec.notes) Seq(StoreSpec(Changed, StructType(parts), none, KeyLayout.Plain, parts.indices)) else Nil)
  }
}
