/** Owns the message of Protobuf that the rows of a sink are. */
package org.apache.spark.sql.headgate.sinks.core

import java.util.Base64

import org.apache.spark.sql.headgate.failures.{Coded, CodedArgumentException}
import org.apache.spark.sql.headgate.protobuf.{ProtoException, ProtoFile, ProtoOut, ProtoTypes, ProtoWriter}
import org.apache.spark.sql.types.StructType

/** @param descriptor a FileDescriptorSet, in Base64
  * @param name the full name of the message
  */
case class RowMessage(descriptor: String, name: String) {

  /** CodedArgumentException if rows with these columns cannot be such messages. */
  def check(columns: StructType): Unit =
    try writer(columns, 0)
    catch {
      case e @ (_: IllegalArgumentException | _: ProtoException) =>
        throw new CodedArgumentException(Coded("PROTOBUF_SCHEMA", "text" -> e.getMessage))
    }

  private[core] def writer(columns: StructType, first: Int): ProtoWriter = {
    val types = ProtoTypes.parse(bytes)
    val found = types.message(s".$name").getOrElse(throw new IllegalArgumentException(
      s"the descriptor has no message $name, only ${types.names.mkString(", ")}"))
    new ProtoWriter(types, found, columns, first)
  }

  /** The file of the message as a registry takes it, which has no references: types of Google's own are
    * known to every registry.
    */
  private[core] def registered: String = {
    val own = file.imports.filterNot(_.startsWith("google/protobuf/"))
    if (own.nonEmpty) throw new CodedArgumentException(Coded("PROTOBUF_SCHEMA", "text" ->
      s"the file of $name imports ${own.mkString(", ")}: for a registry its types must be in one file"))
    Base64.getEncoder.encodeToString(file.bytes)
  }

  /** Which message of its file it is, as it stands behind the schema's id: how many indexes, and each. */
  private[core] def place: Array[Byte] = {
    val out = new ProtoOut
    if (file.path == Seq(0)) out.varint(0)
    else {
      out.zigzag(file.path.length)
      file.path.foreach(index => out.zigzag(index))
    }
    out.result
  }

  private def bytes: Array[Byte] = Base64.getDecoder.decode(descriptor)

  private def file: ProtoFile = ProtoFile.of(bytes, name).get

  override def toString: String = s"RowMessage($name)"
}
