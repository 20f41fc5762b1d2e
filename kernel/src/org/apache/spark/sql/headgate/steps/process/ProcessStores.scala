package org.apache.spark.sql.headgate.steps.process

import org.apache.spark.sql.headgate.spark.{KeyLayout, StoreShape}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/**
 * How a process step keeps its state: a main row for each key; for each list and map a store with a
 * row for each entry; for each clock that is used the times at which a key is to be looked at, in
 * order, so that a batch reads those that are due and no others.
 */
object ProcessStores {
  val Main: String = StoreShape.DefaultName
  val Expires = "expires"
  def clock(name: String): String = if (name == "expiry") name else s"${name}_timers"

  /** The clocks that a step uses, in the order of their stores. */
  def clocks(spec: ProcessSpec): Seq[String] =
    Seq("event", "processing", "expiry").filter(spec.clocks.contains)

  def layout(spec: ProcessSpec, keyTypes: Seq[DataType]): Seq[StoreSpec] = {
    val keys = keyTypes.zipWithIndex.map { case (t, i) => StructField(s"key$i", t) }
    val key = StructType(keys)
    def entries(state: EntryState, part: StructField): StoreSpec = {
      val full = StructType(keys :+ part)
      val value = StructField("value", state.value) +:
        (if (state.ttl > 0) Seq(StructField(Expires, TimestampType)) else Nil)
      StoreSpec(state.name, full, StructType(value), KeyLayout.Prefix(keys.length),
        keys.indices)
    }
    val byTime = StructType(Seq(StructField("time", LongType, nullable = false),
      StructField("timer", IntegerType, nullable = false)) ++ keys)
    val none = StructType(StructField("none", BooleanType) :: Nil)
    Seq(StoreSpec(Main, key, spec.main, KeyLayout.Plain, keys.indices)) ++
      spec.lists.map(s => entries(s, StructField("number", LongType, nullable = false))) ++
      spec.maps.map(s => entries(s, StructField("entry", s.key.get))) ++
      clocks(spec).map(c => StoreSpec(clock(c), byTime, none, KeyLayout.Range(Seq(0)),
        keys.indices.map(_ + 2)))
  }
}
