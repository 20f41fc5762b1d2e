/** Owns values that are one Avro record each: by one schema, or by the registry's with the id in front. */
package org.apache.spark.sql.headgate.steps.decode

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.avro.AvroUtils
import org.apache.spark.sql.headgate.registry.{Framing, RegistryAccess}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** One schema for all records.
  *
  * @param schema the Avro schema, checked against the columns
  * @param isFramed whether Confluent's magic byte and schema id come first
  */
case class AvroFormat(schema: String, isFramed: Boolean) extends ValueFormat {
  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder =
    new AvroValue(this, columns)
}

/** Each record names the schema that it was written with.
  *
  * @param reader the schema that records are resolved into by Avro's rules; without one the columns are
  *   taken by their names from the schema of each record
  */
case class RegisteredAvroFormat(registry: RegistryAccess, reader: Option[String])
  extends ValueFormat {
  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder =
    new RegisteredAvro(registry, reader, columns)
}

object AvroFormat extends FormatKind {
  override def name: String = "avro"

  override def of(root: JsonNode, columns: StructType): ValueFormat = {
    val chosen = ValueFormat.text(root, "avro_schema")
    RegistryAccess.of(root.get("registry")) match {
      case Some(registry) =>
        RegisteredAvroFormat(registry, chosen.map(s => AvroFit.schemaFor(Some(s), columns)))
      case None =>
        val framing = ValueFormat.text(root, "avro_framing").getOrElse("none")
        if (framing != "none" && framing != "confluent") {
          throw new IllegalArgumentException(s"avro_framing: none or confluent, not $framing")
        }
        AvroFormat(AvroFit.schemaFor(chosen, columns), framing == "confluent")
    }
  }
}

/** A value is good only as a whole: bytes left over mean that it was not written by the schema. */
private final class AvroValue(format: AvroFormat, columns: StructType) extends ValueDecoder {
  private val schema = AvroUtils.parseAvroSchema(format.schema)
  private val records = new AvroRecords(schema, schema, columns)

  override def read(value: UTF8String, out: Array[Any]): String = {
    val misfit = if (format.isFramed) Framing.misfit(value) else null
    if (misfit != null) misfit
    else records.read(if (format.isFramed) Framing.body(value) else value, out)
  }
}

private final class RegisteredAvro(
    registry: RegistryAccess, reader: Option[String], columns: StructType)
  extends ValueDecoder {
  private val chosen = reader.map(AvroUtils.parseAvroSchema)
  private val byId =
    new SchemasById[AvroRecords](registry, "AVRO", AvroFit.records(_, chosen, columns))

  override def read(value: UTF8String, out: Array[Any]): String = {
    val misfit = Framing.misfit(value)
    if (misfit != null) misfit
    else byId.of(Framing.id(value)) match {
      case Left(why) => why
      case Right(records) => records.read(Framing.body(value), out)
    }
  }
}
