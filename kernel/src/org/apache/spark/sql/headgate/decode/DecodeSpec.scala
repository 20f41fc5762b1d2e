/** Owns what a decode step is told, and the columns that it gives. */
package org.apache.spark.sql.headgate.decode

import org.apache.spark.sql.types._

/** One source's records: their schema, where they come from, and what to do with a bad one.
  *
  * @param malformed "fail" stops the job at a bad record, "side" lets it out in `__hg_bad`
  * @param table a table source, where a record without a value deletes the row of its key
  * @param keyColumns the table's key, filled from the record's key when a row is deleted
  */
case class DecodeSpec(
    schema: StructType,
    topic: String,
    step: String,
    malformed: String,
    table: Boolean,
    keyColumns: Seq[String]) {
  require(malformed == "fail" || malformed == "side", s"malformed: fail or side, not $malformed")
  keyColumns.foreach(schema.fieldIndex)

  def failsOnMalformed: Boolean = malformed == "fail"

  /** Columns out: the data, then the hidden ones. */
  def outputSchema: StructType =
    schema
      .add(DecodeSpec.Position, LongType, nullable = false)
      .add(DecodeSpec.Deleted, BooleanType, nullable = false)
      .add(DecodeSpec.Bad, DecodeSpec.BadType)
}

object DecodeSpec {
  val Position = "__hg_position"
  val Deleted = "__hg_deleted"
  val Bad = "__hg_bad"

  /** A record that did not parse, whole, with the place it came from. */
  val BadType: StructType = new StructType()
    .add("topic", StringType)
    .add("partition", IntegerType)
    .add("offset", LongType)
    .add("timestamp", TimestampType)
    .add("key", StringType)
    .add("value", StringType)
    .add("reason", StringType)

  /** The raw columns that every topic connector gives, in the order that decoding reads them. */
  val RawColumns: Seq[String] = Seq("key", "value", "partition", "offset", "timestamp")

  /** A record's place as one number that sorts by partition, then offset. */
  def position(partition: Int, offset: Long): Long = (partition.toLong << 48) | offset
}
