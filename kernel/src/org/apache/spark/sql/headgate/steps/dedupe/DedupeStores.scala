package org.apache.spark.sql.headgate.steps.dedupe

import org.apache.spark.sql.headgate.spark.{KeyLayout, StoreShape}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/** How keys are known that have come: with the time of the row that passed, and by when they are forgotten. */
object DedupeStores {
  val Keys: String = StoreShape.DefaultName
  val Due = "due"

  def of(keyTypes: Seq[DataType]): Seq[StoreSpec] = {
    val keys = keyTypes.zipWithIndex.map { case (t, i) => StructField(s"key$i", t) }
    val byTime = StructType(Seq(StructField("time", LongType, nullable = false),
      StructField("timer", IntegerType, nullable = false)) ++ keys)
    Seq(
      StoreSpec(Keys, StructType(keys), StructType(StructField("first_time", TimestampType) :: Nil), KeyLayout.Plain,
        keys.indices),
      StoreSpec(Due, byTime, StructType(StructField("none", BooleanType) :: Nil), KeyLayout.Range(Seq(0)),
        keys.indices.map(_ + 2)))
  }
}
