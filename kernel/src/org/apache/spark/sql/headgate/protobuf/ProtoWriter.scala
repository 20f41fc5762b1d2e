/** Owns writing rows of columns as Protobuf's messages. */
package org.apache.spark.sql.headgate.protobuf

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.headgate.spark.Names
import org.apache.spark.sql.types._

import ProtoBytes.refuse

/** Writes messages of one type; IllegalArgumentException if a column has no field, or one of another type.
  *
  * @param first where the columns begin in a row
  */
private[headgate] final class ProtoWriter(
    types: ProtoTypes, message: ProtoMessage, columns: StructType, first: Int = 0) {
  private val fields: Array[ProtoWriter.Put] = columns.map { column =>
    val field = message.fields.find(f => Names.same(f.name, column.name)).getOrElse(
      throw new IllegalArgumentException(
        s"the message ${message.name.drop(1)} has no field for the column '${column.name}', only " +
          message.fields.map(f => s"'${f.name}'").mkString(", ")))
    ProtoWriter.field(types, field, column.dataType)
  }.toArray

  for (field <- message.fields if field.isRequired && !columns.exists(c => Names.same(c.name, field.name)))
    throw new IllegalArgumentException(
      s"the message ${message.name.drop(1)} requires the field '${field.name}', and there is no such column")

  def write(row: SpecializedGetters, out: ProtoOut): Unit = {
    var i = 0
    while (i < fields.length) {
      fields(i)(row, first + i, out)
      i += 1
    }
  }
}

private[headgate] object ProtoWriter {
  import ProtoTypes._

  /** Writes the value at a place of a row, array or map. */
  private[protobuf] type Put = (SpecializedGetters, Int, ProtoOut) => Unit

  private val Timestamp = ".google.protobuf.Timestamp"
  private val Wrapped = "\\.google\\.protobuf\\.\\w+Value".r

  /** A field with its tag; nothing if the column is null. */
  private def field(types: ProtoTypes, field: ProtoField, from: DataType): Put = {
    val put = present(types, field, from)
    (row, i, out) =>
      if (!row.isNullAt(i)) put(row, i, out)
      else if (field.isRequired) refuse(s"the required field '${field.name}' is null")
  }

  private def present(types: ProtoTypes, field: ProtoField, from: DataType): Put = {
    val inner = if (field.typeName.isEmpty) None else types.message(field.typeName)
    (from, inner) match {
      case (MapType(k, v, _), Some(entry)) if entry.isMapEntry && field.isRepeated =>
        entries(field, tagged(types, entry.fields.find(_.number == 1).get, k),
          tagged(types, entry.fields.find(_.number == 2).get, v))
      case (ArrayType(of, _), _) if field.isRepeated && !inner.exists(_.isMapEntry) =>
        several(field, element(types, field, of))
      case _ if field.isRepeated => misfit(field, from)
      case _ =>
        val (number, wire, put) = (field.number, ProtoTypes.wire(field.kind), value(types, field, from))
        if (field.isOptional || field.kind == Message) (row, i, out) => {
          out.tag(number, wire)
          put(row, i, out)
        }
        else (row, i, out) => out.unlessZero(number, wire)(put(row, i, out))
    }
  }

  /** Numbers are packed, as proto3 has it and every reader must understand. */
  private def several(field: ProtoField, put: Put): Put = {
    val wire = ProtoTypes.wire(field.kind)
    if (wire == ProtoBytes.Length) (row, i, out) => {
      val all = row.getArray(i)
      for (at <- 0 until all.numElements()) {
        out.tag(field.number, wire)
        put(all, at, out)
      }
    }
    else (row, i, out) => {
      val all = row.getArray(i)
      if (all.numElements() > 0) {
        out.tag(field.number, ProtoBytes.Length)
        out.limited((0 until all.numElements()).foreach(put(all, _, out)))
      }
    }
  }

  /** Each entry is a message of a key and a value. */
  private def entries(field: ProtoField, key: Put, one: Put): Put = (row, i, out) => {
    val map = row.getMap(i)
    for (at <- 0 until map.numElements()) {
      out.tag(field.number, ProtoBytes.Length)
      out.limited {
        key(map.keyArray(), at, out)
        one(map.valueArray(), at, out)
      }
    }
  }

  /** A value with its tag, which may not be null. */
  private def tagged(types: ProtoTypes, field: ProtoField, from: DataType): Put = {
    val (number, wire, put) = (field.number, ProtoTypes.wire(field.kind), element(types, field, from))
    (row, i, out) => {
      out.tag(number, wire)
      put(row, i, out)
    }
  }

  private def element(types: ProtoTypes, field: ProtoField, from: DataType): Put = {
    val put = value(types, field, from)
    (row, i, out) =>
      if (row.isNullAt(i)) refuse(s"the field '${field.name}' has a null among its elements")
      else put(row, i, out)
  }

  /** A value without its tag. */
  private def value(types: ProtoTypes, field: ProtoField, from: DataType): Put =
    if (field.kind != Message) ProtoNumbers.of(types, field, from).getOrElse(misfit(field, from))
    else {
      val inner = types.message(field.typeName).getOrElse(throw new IllegalArgumentException(
        s"the descriptor has no ${field.typeName.drop(1)}: make it with --include_imports"))
      (from, field.typeName) match {
        case (TimestampType, Timestamp) => (row, i, out) => out.limited(time(row.getLong(i), out))
        case (struct: StructType, _) =>
          val writer = new ProtoWriter(types, inner, struct)
          (row, i, out) => out.limited(writer.write(row.getStruct(i, struct.length), out))
        case (other, Wrapped()) =>
          val one = present(types, inner.fields.head, other)
          (row, i, out) => out.limited(one(row, i, out))
        case _ => misfit(field, from)
      }
    }

  private def time(micros: Long, out: ProtoOut): Unit = {
    out.unlessZero(1, ProtoBytes.Varint)(out.varint(Math.floorDiv(micros, 1000000L)))
    out.unlessZero(2, ProtoBytes.Varint)(out.varint(Math.floorMod(micros, 1000000L) * 1000L))
  }

  private def misfit(field: ProtoField, from: DataType): Nothing = throw new IllegalArgumentException(
    s"the field '${field.name}' cannot be written from ${from.sql}")
}
