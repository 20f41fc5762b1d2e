/** Owns what Spark's files say of a step as an operator: its name and its stores. */
package org.apache.spark.sql.headgate.store

import org.apache.spark.sql.execution.streaming.state._

object OperatorMetadata {
  def name(step: String): String = s"headgate:$step"

  /** What Spark keeps about an operator in `state/<operator>/_metadata`. */
  def of(operatorId: Long, name: String, stores: Seq[StoreSpec],
      partitions: Int): OperatorStateMetadataV1 =
    OperatorStateMetadataV1(OperatorInfoV1(operatorId, name), stores.map { s =>
      val prefix = s.encoder match {
        case p: PrefixKeyScanStateEncoderSpec => p.numColsPrefixKey
        case _ => 0
      }
      StateStoreMetadataV1(s.name, prefix, partitions)
    }.toArray)
}
