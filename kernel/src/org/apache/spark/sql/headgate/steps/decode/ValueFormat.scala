/** Owns what a format of a record's value must answer, and which formats there are. */
package org.apache.spark.sql.headgate.steps.decode

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** How a record's value holds the value's columns. */
trait ValueFormat {

  /** A new decoder for one task.
    *
    * @param isText whether the source gives values as STRING, and not as bytes that may be anything
    */
  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder

  /** What reads the key of a record that deletes its row and says no more. */
  def keys(spec: DecodeSpec, isText: Boolean, timeZone: String): KeyReader =
    new TextKeys(spec, timeZone)
}

/** A format by its name in a decode step's JSON. */
trait FormatKind {
  def name: String

  /** The format as the step's JSON has it, for these columns; refuses what cannot work. */
  def of(root: JsonNode, columns: StructType): ValueFormat
}

object ValueFormat {
  private val kinds: Seq[FormatKind] =
    Seq(JsonFormat, RawFormat, CsvFormat, AvroFormat, ProtobufFormat, DebeziumJsonFormat,
      DebeziumAvroFormat)

  /** The format that a decode step's JSON names, for these columns. */
  def of(root: JsonNode, columns: StructType): ValueFormat = {
    val name = root.get("format").asText
    kinds.find(_.name == name)
      .getOrElse(throw new IllegalArgumentException(
        s"format: one of ${kinds.map(_.name).mkString(", ")}, not $name"))
      .of(root, columns)
  }

  /** A text of a step's JSON, if it is there. */
  def text(root: JsonNode, name: String): Option[String] =
    Option(root.get(name)).filterNot(_.isNull).map(_.asText)
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

  /** Whether the value that [[read]] took last deletes the row of its key, and does not replace it. */
  def deletes: Boolean = false
}

object ValueDecoder {

  /** The reason given for bytes that should be a text. */
  val NotText = "not valid UTF-8"
}
