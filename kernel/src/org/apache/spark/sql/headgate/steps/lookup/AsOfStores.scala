package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.headgate.spark.{KeyLayout, StoreShape}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/**
 * How a lookup as of a time keeps its state. The newest version of each key is by itself, so that a key with one
 * version costs what it does in a plain lookup; those before it are in the order of a hash of their key and of time.
 */
object AsOfStores {
  val Newest: String = StoreShape.DefaultName
  val Older = "versions"
  /** From when on the versions of a key before a time can be forgotten, in order. */
  val Due = "due"
  /** The stream's rows that wait, by their time. */
  val Waiting = "waiting"
  /** Those that hold the watermark, by their event time. */
  val Times = "event_times"
  /** Columns of an older version's key before those of the user: hash and time. */
  val Before = 2

  def of(rightKeys: Seq[Attribute], value: Attribute, left: Seq[Attribute], rider: Option[Attribute],
      held: Option[Attribute]): Seq[StoreSpec] = {
    val keys = rightKeys.zipWithIndex.map { case (k, i) => StructField(s"key$i", k.dataType) }
    def long(name: String) = StructField(name, LongType, nullable = false)
    val none = StructType(StructField("none", BooleanType) :: Nil)
    val row = StructField("row", value.dataType) // null: the key was deleted then
    def byTime(name: String, first: StructField, second: StructField, value: StructType) =
      StoreSpec(name, StructType(Seq(first, second) ++ keys), value, KeyLayout.Range(Seq(0)), keys.indices.map(_ + 2))
    val columns = LookupStores.waitingColumns(left, rider).map(a => StructField(a.name, a.dataType))
    Seq(
      StoreSpec(Newest, StructType(keys), StructType(Seq(row, StructField("valid_from", TimestampType))),
        KeyLayout.Plain, keys.indices),
      StoreSpec(Older, StructType(Seq(long("__hg_hash"), long("valid_from")) ++ keys), StructType(StructField("version", value.dataType) :: Nil),
        KeyLayout.Range(Seq(0, 1)), keys.indices.map(_ + Before)),
      byTime(Due, long("time"), StructField("timer", IntegerType, nullable = false), none),
      byTime(Waiting, long("time"), long("number"), StructType(columns))) ++
      held.map(_ => byTime(Times, long("time"), long("number"), none))
  }
}
