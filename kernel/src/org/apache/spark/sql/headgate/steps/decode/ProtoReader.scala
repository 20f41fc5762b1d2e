/** Owns reading Protobuf's messages as rows of columns. */
package org.apache.spark.sql.headgate.steps.decode

import java.util.LinkedHashMap

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions.GenericInternalRow
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, GenericArrayData}
import org.apache.spark.sql.headgate.protobuf.{ProtoBytes, ProtoField, ProtoMessage, ProtoTypes}
import org.apache.spark.sql.headgate.protobuf.ProtoBytes.refuse
import org.apache.spark.sql.headgate.spark.Names
import org.apache.spark.sql.types._

/** Reads messages of one type; IllegalArgumentException if a column has no field, or one of another type. */
private[decode] final class ProtoReader(types: ProtoTypes, message: ProtoMessage, columns: StructType) {
  private val slots: Array[ProtoSlot] = columns.map { column =>
    val field = message.fields.find(f => Names.same(f.name, column.name)).getOrElse(
      throw new IllegalArgumentException(
        s"the message ${message.name.drop(1)} has no field for the column '${column.name}', only " +
          message.fields.map(f => s"'${f.name}'").mkString(", ")))
    ProtoSlot.of(types, field, column.dataType)
  }.toArray
  private val byNumber: Map[Int, Int] = slots.indices.map(i => slots(i).field.number -> i).toMap

  def fresh(): Array[Any] = new Array[Any](slots.length)

  /** Adds what the rest of the bytes has: a message may come in several parts. */
  def into(state: Array[Any], in: ProtoBytes, depth: Int): Unit = {
    if (depth > ProtoBytes.MaxDepth) refuse("it is nested too deeply")
    while (!in.atEnd) {
      val tag = in.tag()
      byNumber.get(tag >>> 3) match {
        case Some(i) => state(i) = slots(i).add(state(i), tag, in, depth)
        case None => in.skip(tag)
      }
    }
  }

  /** The columns' values, when all is read. */
  def values(state: Array[Any]): Array[Any] = {
    var i = 0
    while (i < slots.length) {
      state(i) = slots(i).done(state(i))
      i += 1
    }
    state
  }
}

/** What becomes of one field. Its state is null until the field comes. */
private[decode] abstract class ProtoSlot(val field: ProtoField) {
  def add(state: Any, tag: Int, in: ProtoBytes, depth: Int): Any
  def done(state: Any): Any
}

private[decode] object ProtoSlot {
  import ProtoTypes._

  private val Timestamp = ".google.protobuf.Timestamp"
  private val Wrapped = "\\.google\\.protobuf\\.\\w+Value".r

  def of(types: ProtoTypes, field: ProtoField, to: DataType): ProtoSlot = {
    val inner = field.typeName match {
      case "" => None
      case name => types.message(name)
    }
    (to, inner) match {
      case (MapType(k, v, _), Some(entry)) if entry.isMapEntry && field.isRepeated =>
        new Entries(field, one(types, entry.fields.find(_.number == 1).get, k),
          one(types, entry.fields.find(_.number == 2).get, v))
      case (ArrayType(element, _), _) if field.isRepeated && !inner.exists(_.isMapEntry) =>
        new Several(field, one(types, field, element))
      case _ if field.isRepeated => misfit(field, to)
      case _ => one(types, field, to)
    }
  }

  /** A value of its own, or one of several. */
  private def one(types: ProtoTypes, field: ProtoField, to: DataType): ProtoSlot =
    if (field.kind == Message) {
      val inner = types.message(field.typeName).getOrElse(throw new IllegalArgumentException(
        s"the descriptor has no ${field.typeName.drop(1)}: make it with --include_imports"))
      (to, field.typeName) match {
        case (TimestampType, Timestamp) =>
          val parts = new StructType().add("seconds", LongType).add("nanos", IntegerType)
          new Inner(field, new ProtoReader(types, inner, parts), part => micros(part))
        case (struct: StructType, _) =>
          new Inner(field, new ProtoReader(types, inner, struct), part => new GenericInternalRow(part))
        case (other, Wrapped()) =>
          new Inner(field, new ProtoReader(types, inner, new StructType().add("value", other)), _(0))
        case _ => misfit(field, to)
      }
    } else new Scalar(field, ProtoScalar.of(types, field, to).getOrElse(misfit(field, to)))

  private def micros(part: Array[Any]): Any = Math.addExact(
    Math.multiplyExact(part(0).asInstanceOf[Long], 1000000L), part(1).asInstanceOf[Int] / 1000L)

  private def misfit(field: ProtoField, to: DataType): Nothing = throw new IllegalArgumentException(
    s"the field '${field.name}' is not read as ${to.sql}")

  private final class Scalar(field: ProtoField, scalar: ProtoScalar) extends ProtoSlot(field) {
    private val absent = scalar.absent
    def add(state: Any, tag: Int, in: ProtoBytes, depth: Int): Any = scalar.read(tag, in)
    def done(state: Any): Any = if (state == null) absent else state
  }

  private final class Inner(field: ProtoField, reader: ProtoReader, make: Array[Any] => Any)
    extends ProtoSlot(field) {
    def add(state: Any, tag: Int, in: ProtoBytes, depth: Int): Any = {
      if ((tag & 7) != ProtoBytes.Length) refuse(s"the field '${field.name}' is written as another type")
      val part = if (state == null) reader.fresh() else state.asInstanceOf[Array[Any]]
      in.limited(reader.into(part, in, depth + 1))
      part
    }
    def done(state: Any): Any =
      if (state == null) null else make(reader.values(state.asInstanceOf[Array[Any]]))
  }

  /** Numbers may be packed: many in one value. */
  private final class Several(field: ProtoField, each: ProtoSlot) extends ProtoSlot(field) {
    private val mayBePacked = field.kind != Text && field.kind != Bytes && field.kind != Message

    def add(state: Any, tag: Int, in: ProtoBytes, depth: Int): Any = {
      val all = if (state == null) mutable.ArrayBuffer.empty[Any]
        else state.asInstanceOf[mutable.ArrayBuffer[Any]]
      if (mayBePacked && (tag & 7) == ProtoBytes.Length) {
        val unpacked = (tag & ~7) | ProtoTypes.wire(field.kind)
        in.limited(while (!in.atEnd) all += each.done(each.add(null, unpacked, in, depth)))
      } else all += each.done(each.add(null, tag, in, depth))
      all
    }
    def done(state: Any): Any = new GenericArrayData(
      if (state == null) Array.empty[Any] else state.asInstanceOf[mutable.ArrayBuffer[Any]].toArray)
  }

  /** The last of the entries with one key counts. */
  private final class Entries(field: ProtoField, key: ProtoSlot, value: ProtoSlot)
    extends ProtoSlot(field) {
    def add(state: Any, tag: Int, in: ProtoBytes, depth: Int): Any = {
      val all = if (state == null) new LinkedHashMap[Any, Any]
        else state.asInstanceOf[LinkedHashMap[Any, Any]]
      if ((tag & 7) != ProtoBytes.Length) refuse(s"the field '${field.name}' is written as another type")
      var (k, v): (Any, Any) = (null, null)
      in.limited(while (!in.atEnd) {
        val inner = in.tag()
        inner >>> 3 match {
          case 1 => k = key.add(k, inner, in, depth + 1)
          case 2 => v = value.add(v, inner, in, depth + 1)
          case _ => in.skip(inner)
        }
      })
      all.put(key.done(k), value.done(v))
      all
    }

    def done(state: Any): Any = {
      val all = if (state == null) new LinkedHashMap[Any, Any]
        else state.asInstanceOf[LinkedHashMap[Any, Any]]
      new ArrayBasedMapData(
        new GenericArrayData(all.keySet.toArray), new GenericArrayData(all.values.toArray))
    }
  }
}
