/** Owns what Python asks about schemas and the registry that keeps them. */
package org.apache.spark.sql.headgate.api

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.headgate.registry.{Registry, RegistryAccess}
import org.apache.spark.sql.headgate.sinks.core.{RowMessage, RowSchemas}
import org.apache.spark.sql.types.{DataType, StructType}

object RegistryApi {
  private val json = new ObjectMapper

  /** The type and text of a subject's newest schema, or null if it has none; throws a coded failure if the
    * registry does not answer, or says no.
    */
  def latest(accessJson: String, subject: String): Array[String] =
    Registry.of(RegistryAccess.of(json.readTree(accessJson)).get).latest(subject)
      .map(found => Array(found.kind, found.text)).orNull

  /** The Avro schema with which rows of these columns are written; throws if they cannot be. */
  def avroOf(columnsJson: String, record: String, chosen: String): String =
    RowSchemas.avro(DataType.fromJson(columnsJson).asInstanceOf[StructType], record, Option(chosen))

  /** Throws if rows of these columns cannot be written as the message of a descriptor (in Base64). */
  def checkMessage(columnsJson: String, descriptor: String, message: String): Unit =
    RowMessage(descriptor, message).check(DataType.fromJson(columnsJson).asInstanceOf[StructType])

  /** The name of the record that a topic's rows are, unless they have one of their own. */
  def recordName(topic: String): String = RowSchemas.nameOf(topic)
}
