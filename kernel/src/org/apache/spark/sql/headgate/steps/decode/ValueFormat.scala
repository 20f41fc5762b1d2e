/** Owns the formats of a record's value: which there are, and the decoder of each. */
package org.apache.spark.sql.headgate.steps.decode

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** How a record's value holds the value's columns. */
sealed trait ValueFormat {

  /** A new decoder for one task.
    *
    * @param isText whether the source gives values as STRING, and not as bytes that may be anything
    */
  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder
}

/** One JSON object a record. */
case object JsonFormat extends ValueFormat {
  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder =
    new JsonValue(columns, isText, timeZone)
}

/** The value as it is, in one column. */
case object RawFormat extends ValueFormat {
  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder =
    new RawValue(mustBeText = !isText && columns.head.dataType.isInstanceOf[StringType])
}

/** One Avro record in its binary form.
  *
  * @param schema the Avro schema, checked against the columns
  * @param isFramed whether Confluent's magic byte and schema id come first
  */
case class AvroFormat(schema: String, isFramed: Boolean) extends ValueFormat {
  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder =
    new AvroValue(this, columns)
}

object ValueFormat {

  /** The format that a decode step's JSON names, for these columns. */
  def of(root: JsonNode, columns: StructType): ValueFormat = root.get("format").asText match {
    case "json" => JsonFormat
    case "raw" =>
      if (columns.length != 1 || !RecordPart.Key.fits(columns.head.dataType)) {
        throw new IllegalArgumentException(
          s"format raw gives one STRING or BINARY column, not ${columns.sql}")
      }
      RawFormat
    case "avro" =>
      val framing = root.get("avro_framing").asText
      if (framing != "none" && framing != "confluent") {
        throw new IllegalArgumentException(s"avro_framing: none or confluent, not $framing")
      }
      val chosen = Option(root.get("avro_schema")).filterNot(_.isNull).map(_.asText)
      AvroFormat(AvroFit.schemaFor(chosen, columns), framing == "confluent")
    case other => throw new IllegalArgumentException(s"format: json, raw or avro, not $other")
  }
}

/** Reads values in one task; a value comes as bytes, even where it has the class of a text. */
trait ValueDecoder {

  /** Whether a record of a stream may have no value at all. */
  def takesNull: Boolean = false

  /** Writes the value's columns, the first ones of `out`; after false `out` is of no use.
    *
    * The fast way: it may say false to any value, and [[read]] then decides.
    */
  def write(value: UTF8String, out: UnsafeRowWriter): Boolean = false

  /** Sets the value's columns, the first ones of `out`; null, or why the value is malformed. */
  def read(value: UTF8String, out: Array[Any]): String
}

object ValueDecoder {

  /** The reason given for bytes that should be a text. */
  val NotText = "not valid UTF-8"
}
