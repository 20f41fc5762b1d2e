/** Owns Spark's values as the numbers, texts and enums of Protobuf. */
package org.apache.spark.sql.headgate.protobuf

import java.lang.Float.floatToRawIntBits
import java.lang.Double.doubleToRawLongBits

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters
import org.apache.spark.sql.types._

import ProtoBytes.refuse
import ProtoTypes._

private[protobuf] object ProtoNumbers {

  /** None if the field cannot hold all values of the column's type, or nearly all: what has a sign may go
    * into a field without one, and is refused where it is negative.
    */
  def of(types: ProtoTypes, field: ProtoField, from: DataType): Option[ProtoWriter.Put] = {
    type Row = SpecializedGetters
    def put(write: (Row, Int, ProtoOut) => Unit): Option[ProtoWriter.Put] = Some(write)
    def outside = refuse(s"the field '${field.name}' cannot hold a number: it is too large or negative")
    def below32(v: Long): Long = if (v < 0 || v > 0xffffffffL) outside else v
    def positive(v: Long): Long = if (v < 0) outside else v
    def unsigned(v: Decimal): Long = {
      val whole = v.toJavaBigDecimal.toBigIntegerExact
      if (whole.signum < 0 || whole.bitLength > 64) outside else whole.longValue
    }
    (field.kind, from) match {
      case (Bool, BooleanType) => put((row, i, out) => out.varint(if (row.getBoolean(i)) 1 else 0))
      case (Float, FloatType) => put((row, i, out) => out.fixed32(floatToRawIntBits(row.getFloat(i))))
      case (Double, FloatType) =>
        put((row, i, out) => out.fixed64(doubleToRawLongBits(row.getFloat(i).toDouble)))
      case (Double, DoubleType) =>
        put((row, i, out) => out.fixed64(doubleToRawLongBits(row.getDouble(i))))
      case (Text, _: StringType) => put((row, i, out) => out.bytes(row.getUTF8String(i).getBytes))
      case (Bytes, BinaryType) => put((row, i, out) => out.bytes(row.getBinary(i)))
      case (Enum, _: StringType) =>
        val numbers = types.enumOf(field.typeName).map(_.swap)
        put { (row, i, out) =>
          val name = row.getUTF8String(i).toString
          out.varint(numbers.get(name).orElse(name.toIntOption).getOrElse(
            refuse(s"the field '${field.name}' has no value '$name'")).toLong)
        }
      case (Enum, IntegerType) => put((row, i, out) => out.varint(row.getInt(i)))
      case (UInt64, DecimalType.Fixed(20, 0)) =>
        put((row, i, out) => out.varint(unsigned(row.getDecimal(i, 20, 0))))
      case (Fixed64, DecimalType.Fixed(20, 0)) =>
        put((row, i, out) => out.fixed64(unsigned(row.getDecimal(i, 20, 0))))
      case (kind, _) => whole(from).flatMap { of =>
        val wide = from == LongType
        kind match {
          case Int32 if !wide => put((row, i, out) => out.varint(of(row, i)))
          case SInt32 if !wide => put((row, i, out) => out.zigzag(of(row, i)))
          case SFixed32 if !wide => put((row, i, out) => out.fixed32(of(row, i).toInt))
          case UInt32 => put((row, i, out) => out.varint(below32(of(row, i))))
          case Fixed32 => put((row, i, out) => out.fixed32(below32(of(row, i)).toInt))
          case Int64 => put((row, i, out) => out.varint(of(row, i)))
          case SInt64 => put((row, i, out) => out.zigzag(of(row, i)))
          case SFixed64 => put((row, i, out) => out.fixed64(of(row, i)))
          case UInt64 => put((row, i, out) => out.varint(positive(of(row, i))))
          case Fixed64 => put((row, i, out) => out.fixed64(positive(of(row, i))))
          case _ => None
        }
      }
    }
  }

  private def whole(from: DataType): Option[(SpecializedGetters, Int) => Long] = from match {
    case ByteType => Some((row, i) => row.getByte(i).toLong)
    case ShortType => Some((row, i) => row.getShort(i).toLong)
    case IntegerType => Some((row, i) => row.getInt(i).toLong)
    case LongType => Some((row, i) => row.getLong(i))
    case _ => None
  }
}
