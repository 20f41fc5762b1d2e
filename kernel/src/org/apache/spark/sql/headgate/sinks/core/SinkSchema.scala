/** Owns which schema of a registry the values of a sink have. */
package org.apache.spark.sql.headgate.sinks.core

import java.util.concurrent.ConcurrentHashMap

import org.apache.avro.Schema

import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}
import org.apache.spark.sql.headgate.registry.{Registered, Registry, RegistryAccess}
import org.apache.spark.sql.types.StructType

/** @param registry which keeps the schema; without one, values are messages of Protobuf alone
  * @param format avro, json or protobuf
  * @param subject under which the schema is kept; by default the strategy says it
  * @param recordName full name of a schema that is made of the columns; by default that of the topic
  * @param register whether the schema is added to the subject, or must be there
  * @param chosen the Avro schema; by default one is made of the columns
  * @param message the message of Protobuf that values are
  */
case class SinkSchema(
    registry: Option[RegistryAccess],
    format: String,
    subject: Option[String],
    strategy: String,
    recordName: Option[String],
    register: Boolean,
    chosen: Option[String],
    message: Option[RowMessage]) {

  /** How rows of these columns are written, with the id that the registry gives or has. */
  def encoding(topic: String, columns: StructType): ValueEncoding =
    SinkSchema.made.computeIfAbsent((this, topic, columns), _ => make(topic, columns))

  private def make(topic: String, columns: StructType): ValueEncoding = {
    val named = recordName.getOrElse(RowSchemas.nameOf(topic))
    (format, registry) match {
      case ("protobuf", keeper) =>
        val rows = message.get
        rows.check(columns)
        ProtobufEncoding(rows, keeper.map(id(_, topic, rows.name, "PROTOBUF", rows.registered)))
      case ("json", Some(keeper)) =>
        RegisteredJsonEncoding(id(keeper, topic, named, "JSON", RowSchemas.json(columns, named)))
      case (_, keeper) =>
        val text = RowSchemas.avro(columns, named, chosen)
        val full = new Schema.Parser().parse(text).getFullName
        RegisteredAvroEncoding(id(keeper.get, topic, full, "AVRO", text), text)
    }
  }

  private def id(
      registry: RegistryAccess, topic: String, record: String, kind: String, text: String): Int = {
    val under = subject.getOrElse(strategy match {
      case "record-name" => record
      case "topic-record-name" => s"$topic-$record"
      case _ => s"$topic-value"
    })
    val schema = Registered(kind, text, Nil)
    val server = Registry.of(registry)
    if (register) server.register(under, schema)
    else server.find(under, schema).getOrElse(throw new CodedStateException(Coded("SCHEMA_MISFIT",
      "text" -> s"the subject $under of the registry $registry does not have the schema of the rows: $text")))
  }
}

object SinkSchema {
  private val made = new ConcurrentHashMap[(SinkSchema, String, StructType), ValueEncoding]()

  /** From a sink's part of the spec; none if its values are plain JSON. */
  def of(spec: SpecNode): Option[SinkSchema] = {
    def maybe(name: String) = Option(spec.text(name)).filter(_.nonEmpty)
    val registry = RegistryAccess.of(spec.part("registry"))
    val message = maybe("descriptor").map(RowMessage(_, spec.text("message")))
    if (registry.isEmpty && message.isEmpty) None
    else Some(SinkSchema(registry, spec.text("format"), maybe("subject"), spec.text("subject_strategy"),
      maybe("record_name"), spec.text("register", "true") == "true", maybe("avro_schema"), message))
  }
}
