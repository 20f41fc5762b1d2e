/** Owns how the columns of a sink's row become the value of a record. */
package org.apache.spark.sql.headgate.sinks.core

import java.io.ByteArrayOutputStream
import java.util.Arrays

import org.apache.avro.generic.GenericDatumWriter
import org.apache.avro.io.EncoderFactory

import org.apache.spark.sql.avro.{AvroSerializer, AvroUtils}
import org.apache.spark.sql.catalyst.{InternalRow, ProjectingInternalRow}
import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}
import org.apache.spark.sql.headgate.json.{JsonBytes, JsonRowWriter}
import org.apache.spark.sql.headgate.protobuf.{ProtoException, ProtoOut, ProtoWriter}
import org.apache.spark.sql.headgate.registry.Framing
import org.apache.spark.sql.types.StructType

/** What a task needs to encode rows. */
trait ValueEncoding extends Serializable {

  /** A new encoder for one task.
    *
    * @param first where the row's own columns begin in the struct
    */
  def encoder(struct: StructType, first: Int, timeZone: String): ValueEncoder
}

trait ValueEncoder {
  def encode(row: InternalRow): Array[Byte]
}

/** The row as a JSON object. */
case object JsonEncoding extends ValueEncoding {
  override def encoder(struct: StructType, first: Int, timeZone: String): ValueEncoder =
    new JsonEncoder(struct, first, timeZone, Array.emptyByteArray)
}

/** The same behind the id of its schema. */
case class RegisteredJsonEncoding(id: Int) extends ValueEncoding {
  override def encoder(struct: StructType, first: Int, timeZone: String): ValueEncoder =
    new JsonEncoder(struct, first, timeZone, Framing.of(id))
}

/** The row as an Avro record behind the id of its schema. */
case class RegisteredAvroEncoding(id: Int, schema: String) extends ValueEncoding {
  override def encoder(struct: StructType, first: Int, timeZone: String): ValueEncoder =
    new AvroEncoder(struct, first, schema, Framing.of(id))
}

/** The row as a message of Protobuf, with a registry behind the id of its schema. */
case class ProtobufEncoding(message: RowMessage, id: Option[Int]) extends ValueEncoding {
  override def encoder(struct: StructType, first: Int, timeZone: String): ValueEncoder =
    new ProtobufEncoder(message.writer(StructType(struct.drop(first)), first),
      id.fold(Array.emptyByteArray)(Framing.of(_) ++ message.place))
}

private final class ProtobufEncoder(writer: ProtoWriter, before: Array[Byte]) extends ValueEncoder {
  private val out = new ProtoOut

  override def encode(row: InternalRow): Array[Byte] = {
    out.clear()
    out.raw(before)
    try writer.write(row, out)
    catch {
      case e: ProtoException =>
        throw new CodedStateException(Coded("PROTOBUF_VALUE", "text" -> s"a row is no message: ${e.getMessage}"))
    }
    out.result
  }
}

private final class JsonEncoder(struct: StructType, first: Int, timeZone: String, before: Array[Byte])
  extends ValueEncoder {
  private val json = new JsonRowWriter(struct, timeZone, first)
  private val bytes = new JsonBytes(1 << 12)

  override def encode(row: InternalRow): Array[Byte] = {
    bytes.clear()
    bytes.raw(before, 0, before.length)
    json.write(row, bytes)
    Arrays.copyOf(bytes.array, bytes.length)
  }
}

private final class AvroEncoder(struct: StructType, first: Int, text: String, before: Array[Byte])
  extends ValueEncoder {
  private val columns = StructType(struct.drop(first))
  private val schema = AvroUtils.parseAvroSchema(text)
  private val own = ProjectingInternalRow(columns, struct.indices.drop(first))
  private val toRecord = new AvroSerializer(columns.asNullable, schema, false)
  private val writer = new GenericDatumWriter[Any](schema)
  private val bytes = new ByteArrayOutputStream(1 << 10)
  private val encoder = EncoderFactory.get().directBinaryEncoder(bytes, null)

  override def encode(row: InternalRow): Array[Byte] = {
    bytes.reset()
    bytes.write(before)
    own.project(row)
    writer.write(toRecord.serialize(own), encoder)
    encoder.flush()
    bytes.toByteArray
  }
}
