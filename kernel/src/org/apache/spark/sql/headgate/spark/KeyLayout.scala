/** Owns the orders in which a store can have its keys. */
package org.apache.spark.sql.headgate.spark

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.types.StructType

/** In which order a store has its keys, and so what can be scanned in it. */
sealed trait KeyLayout extends Product with Serializable {
  private[spark] def encoder(key: StructType): KeyStateEncoderSpec
}

object KeyLayout {

  /** Single keys are found, and none is scanned for. */
  case object Plain extends KeyLayout {
    private[spark] override def encoder(key: StructType): KeyStateEncoderSpec =
      NoPrefixKeyStateEncoderSpec(key)
  }

  /** Keys with the same first columns are scanned. */
  case class Prefix(columns: Int) extends KeyLayout {
    private[spark] override def encoder(key: StructType): KeyStateEncoderSpec =
      PrefixKeyScanStateEncoderSpec(key, columns)
  }

  /** Keys come in the order of these columns. */
  case class Range(columns: Seq[Int]) extends KeyLayout {
    private[spark] override def encoder(key: StructType): KeyStateEncoderSpec =
      RangeKeyScanStateEncoderSpec(key, columns)
  }

  /** The last column is a time, by which keys come in order; single keys are found as well. */
  case object Time extends KeyLayout {
    private[spark] override def encoder(key: StructType): KeyStateEncoderSpec =
      TimestampAsPrefixKeyStateEncoderSpec(key)
  }
}

/** One store of a step, as Spark has to know it. */
trait StoreShape {
  def name: String
  def keySchema: StructType
  def valueSchema: StructType
  def layout: KeyLayout
}

object StoreShape {

  /** Zero or empty in each column: a bound of a scan by range must have no nulls. */
  def leastRow(schema: StructType): InternalRow = RangeScanBoundaryUtils.defaultInternalRow(schema)

  /** The name that Spark gives to the only store of an operator. */
  val DefaultName: String = StateStoreId.DEFAULT_STORE_NAME
}
