/** Owns the number under which a step's state lives. */
package org.apache.spark.sql.headgate.store

/** A step's state lives under a number made from its name, so it survives any change of the plan. */
object OperatorId {

  /** The operator's name in what Spark reports and writes. */
  def name(step: String): String = s"headgate:$step"

  /** 31 bits with a high one set: the state reader parses an Int, and Spark's own ids are small.
    * The same CRC-32 is made in Python (headgate/graph/model.py), where collisions are refused. */
  def of(step: String): Long = {
    val crc = new java.util.zip.CRC32
    crc.update(step.getBytes(java.nio.charset.StandardCharsets.UTF_8))
    (crc.getValue & 0x3fffffffL) | 0x40000000L
  }
}
