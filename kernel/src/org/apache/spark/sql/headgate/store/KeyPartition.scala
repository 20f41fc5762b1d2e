package org.apache.spark.sql.headgate.store

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.headgate.spark.GeneratedCode

/** The partition that a key's state is in: that of the exchange in front of the step. */
object KeyPartition {

  /** The partition_by columns of a full key; the result is good until the next call. */
  def columns(spec: StoreSpec): UnsafeProjection = GeneratedCode.projection(references(spec))

  /** By a store's full key. */
  def function(spec: StoreSpec, partitions: Int): UnsafeRow => Int =
    function(references(spec), partitions)

  /** By the partition_by columns alone. */
  def of(columns: UnsafeRow, spec: StoreSpec, partitions: Int): Int =
    function(references(spec).zipWithIndex.map { case (r, i) => r.copy(ordinal = i) },
      partitions)(columns)

  private def references(spec: StoreSpec): Seq[BoundReference] =
    spec.partitionBy.map(i => BoundReference(i, spec.keySchema(i).dataType, nullable = true))

  private def function(columns: Seq[Expression], partitions: Int): UnsafeRow => Int = {
    val hash = GeneratedCode.projection(HashPartitioning(columns, partitions).partitionIdExpression :: Nil)
    row => hash(row).getInt(0)
  }
}
