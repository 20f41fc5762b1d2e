/** Owns whether an Avro schema fits the columns of a source. */
package org.apache.spark.sql.headgate.steps.decode

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.avro.Schema

import org.apache.spark.sql.avro.{AvroDeserializer, AvroUtils, SchemaConverters}
import org.apache.spark.sql.headgate.failures.{Coded, CodedArgumentException}
import org.apache.spark.sql.headgate.registry.Registered
import org.apache.spark.sql.headgate.spark.Names
import org.apache.spark.sql.types.StructType

object AvroFit {
  /** The Avro schema of the values, as JSON: the given one, or the one that `to_avro` would give
    * these columns. IllegalArgumentException if it is none or does not fit.
    */
  def schemaFor(chosen: Option[String], columns: StructType): String = {
    val schema = chosen match {
      case Some(text) => orRefuse("the Avro schema is not valid")(AvroUtils.parseAvroSchema(text))
      case None => orRefuse("no Avro schema can be derived from the columns")(
          SchemaConverters.toAvroType(columns, nullable = false))
    }
    if (schema.getType != Schema.Type.RECORD) {
      refuse(s"the Avro schema is of type ${schema.getType.getName}, and a record is needed")
    }
    val fields = schema.getFields.asScala.map(_.name)
    columns.fieldNames.foreach { column =>
      // Spark would give nulls for it, record after record, and nobody would know why.
      if (!fields.exists(Names.same(_, column))) {
        refuse(s"the Avro schema has no field for the column '$column', " +
          s"only ${fields.map(f => s"'$f'").mkString(", ")}")
      }
    }
    orRefuse("the Avro schema does not fit the columns")(deserializer(schema, columns))
    chosen.getOrElse(schema.toString)
  }

  /** The records of a registry's schema, or why there can be none: of whatever was written, that is a
    * fault of its records.
    *
    * @param chosen what they are resolved into; without it the columns are found in the schema itself
    */
  def records(
      registered: Registered, chosen: Option[Schema], columns: StructType): Either[String, AvroRecords] =
    try {
      // each may name types of those before it
      val parser = new Schema.Parser()
      registered.references.foreach(parser.parse(_))
      val writer = parser.parse(registered.text)
      if (writer.getType == Schema.Type.RECORD) {
        Right(new AvroRecords(writer, chosen.getOrElse(writer), columns))
      } else Left(s"is of type ${writer.getType.getName}, and a record is needed")
    } catch { case NonFatal(e) => Left(s"does not fit the columns: ${innermost(e)}") }

  /** Spark's converter of Avro records to rows; dates are of the calendar that all use by now. */
  def deserializer(schema: Schema, columns: StructType): AvroDeserializer =
    new AvroDeserializer(
      schema,
      columns.asNullable,
      datetimeRebaseMode = "CORRECTED",
      useStableIdForUnionType = false,
      stableIdPrefixForUnionType = "",
      recursiveFieldMaxDepth = -1)

  private def orRefuse[T](what: String)(body: => T): T =
    try body
    catch { case NonFatal(e) => refuse(s"$what: ${innermost(e)}") }

  private def innermost(e: Throwable): String =
    if (e.getCause != null && e.getCause != e) innermost(e.getCause)
    else Option(e.getMessage).getOrElse(e.getClass.getSimpleName)
      .takeWhile(c => c != '\n' && c != '\r')

  private def refuse(sentence: String): Nothing =
    throw new CodedArgumentException(Coded("AVRO_SCHEMA", "text" -> sentence))
}
