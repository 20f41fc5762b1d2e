/** Owns which schema of a registry the values of a sink have. */
package org.apache.spark.sql.headgate.sinks.core

import java.util.concurrent.ConcurrentHashMap

import org.apache.avro.Schema

import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}
import org.apache.spark.sql.headgate.registry.{Registered, Registry, RegistryAccess}
import org.apache.spark.sql.types.StructType

/** @param format avro or json
  * @param subject under which the schema is kept; by default the strategy says it
  * @param recordName full name of a schema that is made of the columns; by default that of the topic
  * @param register whether the schema is added to the subject, or must be there
  * @param chosen the Avro schema; by default one is made of the columns
  */
case class SinkSchema(
    registry: RegistryAccess,
    format: String,
    subject: Option[String],
    strategy: String,
    recordName: Option[String],
    register: Boolean,
    chosen: Option[String]) {

  /** How rows of these columns are written, with the id that the registry gives or has. */
  def encoding(topic: String, columns: StructType): ValueEncoding =
    SinkSchema.made.computeIfAbsent((this, topic, columns), _ => make(topic, columns))

  private def make(topic: String, columns: StructType): ValueEncoding = {
    val named = recordName.getOrElse(RowSchemas.nameOf(topic))
    if (format == "json") {
      RegisteredJsonEncoding(id(topic, named, "JSON", RowSchemas.json(columns, named)))
    } else {
      val text = RowSchemas.avro(columns, named, chosen)
      val full = new Schema.Parser().parse(text).getFullName
      RegisteredAvroEncoding(id(topic, full, "AVRO", text), text)
    }
  }

  private def id(topic: String, record: String, kind: String, text: String): Int = {
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

  /** From a sink's part of the spec; none if it has no registry. */
  def of(spec: SpecNode): Option[SinkSchema] = RegistryAccess.of(spec.part("registry")).map { access =>
    def maybe(name: String) = Option(spec.text(name)).filter(_.nonEmpty)
    SinkSchema(access, spec.text("format"), maybe("subject"), spec.text("subject_strategy"),
      maybe("record_name"), spec.text("register", "true") == "true", maybe("avro_schema"))
  }
}
