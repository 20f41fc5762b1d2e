/** Owns values that are one JSON object each, plain or behind the id of a registry's schema. */
package org.apache.spark.sql.headgate.steps.decode

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.headgate.registry.{Framing, RegistryAccess}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** @param registry if there is one, Confluent's framing comes first
  * @param texts the columns that hold their field's JSON as it is
  */
case class JsonFormat(registry: Option[RegistryAccess], texts: Set[String]) extends ValueFormat {
  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder = {
    val plain = if (texts.isEmpty) new JsonValue(columns, isText, timeZone)
      else new JsonTexts(columns, texts, isText, timeZone)
    registry.fold[ValueDecoder](plain)(new RegisteredJson(_, plain))
  }
}

object JsonFormat extends FormatKind {
  override def name: String = "json"
  override def of(root: JsonNode, columns: StructType): ValueFormat =
    JsonFormat(RegistryAccess.of(root.get("registry")), Option(root.get("json_text")).toSeq
      .flatMap(_.elements.asScala.map(_.asText)).toSet)
}

/** The body is read by the columns, as JSON without a registry is: a JSON Schema says what may be there,
  * not how it is written.
  */
private final class RegisteredJson(registry: RegistryAccess, plain: ValueDecoder) extends ValueDecoder {
  private val schemas = new SchemasById[String](registry, "JSON", s => Right(s.text))

  override def write(value: UTF8String, out: UnsafeRowWriter): Boolean =
    Framing.misfit(value) == null && schemas.of(Framing.id(value)).isRight &&
      plain.write(Framing.body(value), out)

  override def read(value: UTF8String, out: Array[Any]): String = {
    val misfit = Framing.misfit(value)
    if (misfit != null) misfit
    else schemas.of(Framing.id(value)) match {
      case Left(why) => why
      case Right(_) => plain.read(Framing.body(value), out)
    }
  }
}
