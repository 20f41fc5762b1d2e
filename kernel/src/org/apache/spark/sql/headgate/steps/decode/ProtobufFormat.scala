/** Owns values that are one Protobuf message each, plain or behind the id of a registry's schema. */
package org.apache.spark.sql.headgate.steps.decode

import java.util.Base64

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.headgate.failures.{Coded, CodedArgumentException}
import org.apache.spark.sql.headgate.protobuf.{ProtoBytes, ProtoException, ProtoTypes}
import org.apache.spark.sql.headgate.registry.{Framing, RegistryAccess}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** @param descriptor a FileDescriptorSet
  * @param message the full name of the message that values are
  * @param registry if there is one, Confluent's framing and the place of the message in its file come first
  */
case class ProtobufFormat(descriptor: Seq[Byte], message: String, registry: Option[RegistryAccess])
  extends ValueFormat {

  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder = {
    val messages = new ProtobufValue(reader(columns))
    registry.fold[ValueDecoder](messages)(new RegisteredProtobuf(_, messages))
  }

  private[decode] def reader(columns: StructType): ProtoReader = {
    val types = ProtoTypes.parse(descriptor.toArray)
    val found = types.message(s".$message").getOrElse(throw new IllegalArgumentException(
      s"the descriptor has no message $message, only ${types.names.mkString(", ")}"))
    new ProtoReader(types, found, columns)
  }

  override def toString: String = s"ProtobufFormat($message)"
}

object ProtobufFormat extends FormatKind {
  override def name: String = "protobuf"

  override def of(root: JsonNode, columns: StructType): ValueFormat = {
    val format = ProtobufFormat(Base64.getDecoder.decode(root.get("descriptor").asText).toSeq,
      root.get("message").asText, RegistryAccess.of(root.get("registry")))
    try format.reader(columns)
    catch {
      case e @ (_: IllegalArgumentException | _: ProtoException) =>
        throw new CodedArgumentException(Coded("PROTOBUF_SCHEMA", "text" -> e.getMessage))
    }
    format
  }
}

private final class ProtobufValue(reader: ProtoReader) extends ValueDecoder {
  override def read(value: UTF8String, out: Array[Any]): String = {
    val (bytes, from) = value.getBaseObject match {
      case b: Array[Byte] => (b, (value.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt)
      case _ => (value.getBytes, 0)
    }
    read(new ProtoBytes(bytes, from, from + value.numBytes), out)
  }

  def read(in: ProtoBytes, out: Array[Any]): String =
    try {
      val state = reader.fresh()
      reader.into(state, in, depth = 0)
      val values = reader.values(state)
      System.arraycopy(values, 0, out, 0, values.length)
      null
    } catch {
      case e: ProtoException => "not valid Protobuf: " + e.getMessage
      case _: ArithmeticException => "not valid Protobuf: a time is too far away"
    }
}

/** The message is the one that the job names: which of its file's messages the bytes say it is, is not
  * looked at. Protobuf needs no schema of the writer, so the registry only has to know the id.
  */
private final class RegisteredProtobuf(registry: RegistryAccess, messages: ProtobufValue)
  extends ValueDecoder {
  private val schemas = new SchemasById[String](registry, "PROTOBUF", s => Right(s.text))

  override def read(value: UTF8String, out: Array[Any]): String = {
    val misfit = Framing.misfit(value)
    if (misfit != null) misfit
    else schemas.of(Framing.id(value)) match {
      case Left(why) => why
      case Right(_) =>
        val bytes = Framing.body(value).getBytes
        val in = new ProtoBytes(bytes, 0, bytes.length)
        try {
          // the count of the indexes and then each; a zero stands for the first message alone
          var left = Math.min(in.zigzag(), bytes.length)
          while (left > 0) {
            in.varint()
            left -= 1
          }
          messages.read(in, out)
        } catch { case e: ProtoException => "not valid Protobuf: " + e.getMessage }
    }
  }
}
