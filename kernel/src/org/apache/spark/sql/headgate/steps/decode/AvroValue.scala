/** Owns reading an Avro value with Spark's own converter. */
package org.apache.spark.sql.headgate.steps.decode

import java.io.EOFException

import scala.util.control.NonFatal

import org.apache.avro.generic.{GenericData, GenericDatumReader}

import org.apache.spark.sql.avro.AvroUtils
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** A value is good only as a whole: bytes left over mean that it was not written by the schema. */
final class AvroValue(format: AvroFormat, columns: StructType) extends ValueDecoder {
  import AvroValue._

  private val width = columns.length
  private val schema = AvroUtils.parseAvroSchema(format.schema)
  // With data of its own: anyone may add conversions to GenericData.get.
  private val reader = new GenericDatumReader[Any](schema, schema, new GenericData())
  private val toRow = AvroFit.deserializer(schema, columns)
  private val bytes = new AvroBytes
  private var record: Any = _

  override def read(value: UTF8String, out: Array[Any]): String = {
    bytes.open(value)
    if (format.isFramed) {
      if (value.numBytes < FrameBytes) {
        return s"not in Confluent's framing: ${value.numBytes} bytes are less than its $FrameBytes"
      }
      if (value.getByte(0) != 0) {
        return f"not in Confluent's framing: the first byte is 0x${value.getByte(0)}%02x, not 0x00"
      }
      bytes.skipFixed(FrameBytes)
    }
    try {
      record = reader.read(record, bytes)
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
      case NonFatal(e) => refuse(sentence(e))
      case _: StackOverflowError => refuse("it is nested too deeply")
    }
  }

  private def refuse(why: String): String = {
    record = null // half filled
    "not valid Avro: " + why
  }
}

private object AvroValue {
  /** Confluent's magic byte and the four bytes of a schema's id. */
  val FrameBytes = 5
  private val MaxReason = 180

  private def sentence(e: Throwable): String = e match {
    case _: EOFException => "it ends too early"
    case _: IndexOutOfBoundsException => "no branch of a union or symbol of an enum has its number"
    case _ =>
      val text = Option(e.getMessage).getOrElse(e.getClass.getSimpleName)
      text.takeWhile(c => c != '\n' && c != '\r').take(MaxReason)
  }
}
