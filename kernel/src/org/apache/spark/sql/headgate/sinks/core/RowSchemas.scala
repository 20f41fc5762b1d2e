/** Owns the schemas that are made of a sink's columns, for a registry. */
package org.apache.spark.sql.headgate.sinks.core

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}
import org.apache.avro.{JsonProperties, Schema}

import org.apache.spark.sql.avro.{AvroSerializer, AvroUtils, SchemaConverters}
import org.apache.spark.sql.headgate.failures.{Coded, CodedArgumentException}
import org.apache.spark.sql.types._

object RowSchemas {

  /** A record's name for a topic, whose name may have characters that a record's may not. */
  def nameOf(topic: String): String = {
    val name = topic.replaceAll("[^A-Za-z0-9_]", "_")
    if (name.head.isDigit) s"_$name" else name
  }

  /** The chosen schema, or one that is made of the columns, as JSON. CodedArgumentException if the
    * columns cannot be written by it.
    *
    * In one that is made every field may be null and is by default, whatever Spark knows of its nulls: so
    * the schema depends on the columns alone, and one more or less is a compatible change.
    */
  def avro(columns: StructType, record: String, chosen: Option[String]): String =
    try {
      val schema = chosen.fold(made(columns, record))(AvroUtils.parseAvroSchema)
      if (schema.getType != Schema.Type.RECORD) {
        throw new IllegalArgumentException(
          s"it is of type ${schema.getType.getName}, and a record is needed")
      }
      new AvroSerializer(columns.asNullable, schema, false)
      chosen.getOrElse(schema.toString)
    } catch {
      case NonFatal(e) => throw new CodedArgumentException(
        Coded("AVRO_SCHEMA", "text" -> s"the rows cannot be written as Avro: ${innermost(e)}"))
    }

  private def made(columns: StructType, record: String): Schema = {
    val dot = record.lastIndexOf('.')
    val (space, name) = (record.take(dot.max(0)), record.drop(dot + 1))
    val plain = SchemaConverters.toAvroType(columns.asNullable, false, name, space)
    val nothing = Schema.create(Schema.Type.NULL)
    val fields = plain.getFields.asScala.map { field =>
      val types = field.schema.getTypes.asScala.filter(_.getType != Schema.Type.NULL)
      val optional = Schema.createUnion((nothing +: types).asJava)
      new Schema.Field(field.name, optional, field.doc, JsonProperties.NULL_VALUE)
    }
    Schema.createRecord(plain.getName, plain.getDoc, plain.getNamespace, false, fields.asJava)
  }

  /** A JSON Schema of the rows as they are written: a null is left out, and there are no others. */
  def json(columns: StructType, record: String): String = {
    val root = JsonNodeFactory.instance.objectNode()
      .put("$schema", "http://json-schema.org/draft-07/schema#").put("title", record)
    root.setAll[ObjectNode](typeOf(columns)).toString
  }

  private def typeOf(dataType: DataType): ObjectNode = {
    val node = JsonNodeFactory.instance.objectNode()
    dataType match {
      case struct: StructType =>
        node.put("type", "object")
        val properties = node.putObject("properties")
        struct.foreach(field => properties.set[ObjectNode](field.name, typeOf(field.dataType)))
        node.put("additionalProperties", false)
      case ArrayType(element, _) =>
        node.put("type", "array")
        val items = node.putObject("items").putArray("oneOf")
        items.addObject().put("type", "null")
        items.add(typeOf(element))
        node
      case MapType(_, value, _) =>
        node.put("type", "object").set[ObjectNode]("additionalProperties", typeOf(value))
      case BooleanType => node.put("type", "boolean")
      case ByteType | ShortType | IntegerType | LongType => node.put("type", "integer")
      case FloatType | DoubleType | _: DecimalType => node.put("type", "number")
      case TimestampType => node.put("type", "string").put("format", "date-time")
      case DateType => node.put("type", "string").put("format", "date")
      case _ => node.put("type", "string")
    }
  }

  private def innermost(e: Throwable): String =
    if (e.getCause != null && e.getCause != e) innermost(e.getCause)
    else Option(e.getMessage).getOrElse(e.getClass.getSimpleName)
      .takeWhile(c => c != '\n' && c != '\r')
}
