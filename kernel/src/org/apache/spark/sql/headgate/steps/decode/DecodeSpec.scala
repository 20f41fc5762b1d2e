/** Owns what a decode step has to do, and the columns that it gives. */
package org.apache.spark.sql.headgate.steps.decode

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import org.apache.spark.sql.types._

/** One source's records: their schema, where they come from, and what to do with a bad one.
  *
  * @param schema the value's columns, then one column for each part of `metadata`
  * @param malformed "fail" stops the job at a bad record, "side" lets it out in `__hg_bad`
  * @param table a table source, where a record without a value deletes the row of its key
  * @param keyColumns the table's key, filled from the record's key when a row is deleted
  * @param metadata which parts of the record itself are the last columns
  */
case class DecodeSpec(
    schema: StructType,
    topic: String,
    step: String,
    malformed: String,
    table: Boolean,
    keyColumns: Seq[String],
    format: ValueFormat,
    metadata: Seq[RecordPart]) {
  require(malformed == "fail" || malformed == "side", s"malformed: fail or side, not $malformed")
  keyColumns.foreach(schema.fieldIndex)

  def failsOnMalformed: Boolean = malformed == "fail"

  /** How many of the columns are read from the record's value; the metadata's come behind them. */
  def valueColumns: Int = schema.length - metadata.length

  def valueSchema: StructType = StructType(schema.take(valueColumns))

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

  private val mapper = new ObjectMapper()

  /** The spec from the JSON that Python gives; refuses one that cannot work, with a sentence. */
  def parse(json: String): DecodeSpec = {
    val root = mapper.readTree(json)
    val declared = DataType.fromJson(root.get("schema").toString).asInstanceOf[StructType]
    val metadata = root.get("metadata").elements.asScala.map(texts).toSeq
    DecodeSpec(
      declared.asNullable,
      root.get("topic").asText,
      root.get("step").asText,
      root.get("malformed").asText,
      root.get("table").asBoolean,
      texts(root.get("key_columns")),
      // before the columns become nullable: a derived Avro schema depends on that
      ValueFormat.of(root, StructType(declared.dropRight(metadata.length))),
      RecordPart.of(declared.takeRight(metadata.length), metadata))
  }

  private def texts(node: JsonNode): Seq[String] = node.elements.asScala.map(_.asText).toSeq

  /** A record's place as one number that sorts by partition, then offset. */
  def position(partition: Int, offset: Long): Long = (partition.toLong << 48) | offset
}
