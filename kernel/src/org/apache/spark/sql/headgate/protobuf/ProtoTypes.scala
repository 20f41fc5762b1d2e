/** Owns the types of a descriptor file, as `protoc --descriptor_set_out --include_imports` writes it. */
package org.apache.spark.sql.headgate.protobuf

import scala.collection.mutable

import ProtoBytes.refuse

/** A field of a message.
  *
  * @param kind FieldDescriptorProto.Type
  * @param typeName of a message or an enum, with a dot in front
  * @param default as the file has it; where there is none, and `isOptional` is false, it is zero
  * @param isOptional whether a message can lack it, so that it is null
  * @param isRequired whether no message may lack it
  */
private[headgate] case class ProtoField(
    name: String, number: Int, kind: Int, isRepeated: Boolean, typeName: String,
    default: Option[String], isOptional: Boolean, isRequired: Boolean)

private[headgate] case class ProtoMessage(name: String, fields: Seq[ProtoField], isMapEntry: Boolean)

private[headgate] final class ProtoTypes(
    messages: Map[String, ProtoMessage], enums: Map[String, Map[Int, String]]) {
  def names: Seq[String] = messages.values.filterNot(_.isMapEntry).map(_.name.drop(1)).toSeq.sorted

  def message(name: String): Option[ProtoMessage] = messages.get(name)
  def enumOf(name: String): Map[Int, String] = enums.getOrElse(name, Map.empty)
}

private[headgate] object ProtoTypes {
  // FieldDescriptorProto.Type
  val Double = 1
  val Float = 2
  val Int64 = 3
  val UInt64 = 4
  val Int32 = 5
  val Fixed64 = 6
  val Fixed32 = 7
  val Bool = 8
  val Text = 9
  val Message = 11
  val Bytes = 12
  val UInt32 = 13
  val Enum = 14
  val SFixed32 = 15
  val SFixed64 = 16
  val SInt32 = 17
  val SInt64 = 18

  private val Required = 2
  private val Repeated = 3

  /** How values of a kind are written. */
  def wire(kind: Int): Int = kind match {
    case Double | Fixed64 | SFixed64 => ProtoBytes.Fixed64
    case Float | Fixed32 | SFixed32 => ProtoBytes.Fixed32
    case Text | Bytes | Message => ProtoBytes.Length
    case _ => ProtoBytes.Varint
  }

  /** The types of all files in a FileDescriptorSet. */
  def parse(bytes: Array[Byte]): ProtoTypes = {
    val found = new Found
    val in = new ProtoBytes(bytes, 0, bytes.length)
    each(in) { case 1 => in.limited(found.file(in)) }
    new ProtoTypes(found.messages.toMap, found.enums.toMap)
  }

  /** Calls what a field's number stands for, and leaves out the others. */
  private[protobuf] def each(in: ProtoBytes)(known: PartialFunction[Int, Unit]): Unit = while (!in.atEnd) {
    val tag = in.tag()
    val number = tag >>> 3
    if (known.isDefinedAt(number)) known(number) else in.skip(tag)
  }

  /** A part of a message that is read later, since what it needs may stand behind it. */
  private def part(in: ProtoBytes): ProtoBytes = {
    val bytes = in.bytes()
    new ProtoBytes(bytes, 0, bytes.length)
  }

  private final class Found {
    val messages = mutable.Map.empty[String, ProtoMessage]
    val enums = mutable.Map.empty[String, Map[Int, String]]

    def file(in: ProtoBytes): Unit = {
      var (space, syntax) = ("", "proto2")
      val inner = mutable.ArrayBuffer.empty[() => Unit]
      each(in) {
        case 2 => space = "." + in.text()
        case 4 => val one = part(in); inner += (() => message(one, space, syntax))
        case 5 => val one = part(in); inner += (() => enumType(one, space))
        case 12 => syntax = in.text()
      }
      if (syntax == "editions") refuse("a file with an edition: proto2 and proto3 are read")
      inner.foreach(_())
    }

    private def message(in: ProtoBytes, space: String, syntax: String): Unit = {
      var (name, isMapEntry) = ("", false)
      val fields = mutable.ArrayBuffer.empty[ProtoField]
      val inner = mutable.ArrayBuffer.empty[() => Unit]
      each(in) {
        case 1 => name = s"$space.${in.text()}"
        case 2 => fields += in.limited(field(in, syntax))
        case 3 => val one = part(in); inner += (() => message(one, name, syntax))
        case 4 => val one = part(in); inner += (() => enumType(one, name))
        case 7 => in.limited(each(in) { case 7 => isMapEntry = in.varint() != 0 })
      }
      messages(name) = ProtoMessage(name, fields.toSeq, isMapEntry)
      inner.foreach(_())
    }

    private def field(in: ProtoBytes, syntax: String): ProtoField = {
      var (name, number, label, kind, typeName) = ("", 0, 0, 0, "")
      var default: Option[String] = None
      var isOptional = syntax != "proto3"
      each(in) {
        case 1 => name = in.text()
        case 3 => number = in.varint().toInt
        case 4 => label = in.varint().toInt
        case 5 => kind = in.varint().toInt
        case 6 => typeName = in.text()
        case 7 => default = Some(in.text())
        case 9 => in.varint(); isOptional = true // one of several
        case 17 => if (in.varint() != 0) isOptional = true
      }
      ProtoField(name, number, kind, label == Repeated, typeName, default, isOptional,
        label == Required)
    }

    private def enumType(in: ProtoBytes, space: String): Unit = {
      var name = ""
      val values = mutable.Map.empty[Int, String]
      each(in) {
        case 1 => name = s"$space.${in.text()}"
        case 2 => in.limited {
          var (value, number) = ("", 0)
          each(in) {
            case 1 => value = in.text()
            case 2 => number = in.varint().toInt
          }
          values.getOrElseUpdate(number, value) // the first of several names
        }
      }
      enums(name) = values.toMap
    }
  }
}
