/** Owns reading Avro records that have one schema, with Spark's own converter. */
package org.apache.spark.sql.headgate.steps.decode

import java.io.EOFException

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.avro.{Schema, SchemaCompatibility}
import org.apache.avro.generic.{GenericData, GenericDatumReader}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** One instance serves one task.
  *
  * @param writer the schema that the bytes were written with
  * @param reader the one that they are resolved into; its fields are the columns
  */
private[decode] final class AvroRecords(writer: Schema, reader: Schema, columns: StructType) {
  import AvroRecords._

  private val width = columns.length
  // With data of its own: anyone may add conversions to GenericData.get.
  private val datums = new GenericDatumReader[Any](writer, reader, new GenericData())
  private val toRow = AvroFit.deserializer(reader, columns)
  private val bytes = new AvroBytes
  private var record: Any = _

  /** Where the two schemas cannot be resolved: some records may be read even so. */
  private lazy val misfit: Option[String] =
    if (writer eq reader) None
    else SchemaCompatibility.checkReaderWriterCompatibility(reader, writer).getResult
      .getIncompatibilities.asScala.headOption.map { what =>
        val kind = what.getType.name.toLowerCase.replace('_', ' ')
        s"it does not resolve into the reader's schema: $kind: ${what.getMessage} (${what.getLocation})"
      }

  /** Sets the columns, the first ones of `out`; null, or why the value is malformed. */
  def read(value: UTF8String, out: Array[Any]): String = {
    bytes.open(value)
    try {
      record = datums.read(record, bytes)
      if (bytes.left > 0) s"not valid Avro: ${bytes.left} bytes are left over"
      else {
        val row = toRow.deserialize(record).get.asInstanceOf[InternalRow]
        var c = 0
        while (c < width) {
          out(c) = if (row.isNullAt(c)) null else row.get(c, columns(c).dataType)
          c += 1
        }
        null
      }
    } catch {
      case NonFatal(e) => refuse(misfit.getOrElse(sentence(e)))
      case _: StackOverflowError => refuse("it is nested too deeply")
    }
  }

  private def refuse(why: String): String = {
    record = null // half filled
    "not valid Avro: " + why
  }
}

private object AvroRecords {
  private val MaxReason = 180

  def sentence(e: Throwable): String = e match {
    case _: EOFException => "it ends too early"
    case _: IndexOutOfBoundsException => "no branch of a union or symbol of an enum has its number"
    case _ =>
      val text = Option(e.getMessage).getOrElse(e.getClass.getSimpleName)
      text.takeWhile(c => c != '\n' && c != '\r').take(MaxReason)
  }
}
