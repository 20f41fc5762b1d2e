/** Owns the numbers, texts and enums of Protobuf as Spark's values. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.sql.headgate.json.Utf8
import org.apache.spark.sql.headgate.protobuf.{ProtoBytes, ProtoField, ProtoTypes}
import org.apache.spark.sql.headgate.protobuf.ProtoBytes.refuse
import org.apache.spark.sql.headgate.protobuf.ProtoTypes._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** @param absent what a message without the field has */
private[decode] final class ProtoScalar(field: ProtoField, val absent: Any, value: ProtoBytes => Any) {
  private val expected = ProtoTypes.wire(field.kind)

  def read(tag: Int, in: ProtoBytes): Any = {
    if ((tag & 7) != expected) refuse(s"the field '${field.name}' is written as another type")
    value(in)
  }
}

private[decode] object ProtoScalar {

  /** None if the column's type cannot hold the field. */
  def of(types: ProtoTypes, field: ProtoField, to: DataType): Option[ProtoScalar] = {
    def made(zero: Any, written: String => Any)(read: ProtoBytes => Any) = Some(new ProtoScalar(field,
      field.default.map(written).getOrElse(if (field.isOptional) null else zero), read))
    def long(of: ProtoBytes => Long) = made(0L, _.toLong)(of)
    def int(of: ProtoBytes => Int) = made(0, _.toInt)(of)
    def unsigned(of: ProtoBytes => Long) = to match {
      case DecimalType.Fixed(20, 0) =>
        made(Decimal(0L, 20, 0), d => Decimal(BigDecimal(d), 20, 0))(in =>
          Decimal(BigDecimal(java.lang.Long.toUnsignedString(of(in))), 20, 0))
      case LongType => made(0L, _.toLong) { in =>
        val v = of(in)
        if (v < 0) refuse(s"the field '${field.name}' is larger than a BIGINT")
        v
      }
      case _ => None
    }
    (field.kind, to) match {
      case (Int32, IntegerType) => int(_.varint().toInt)
      case (Int32, LongType) => long(_.varint().toInt)
      case (SInt32, IntegerType) => int(_.zigzag().toInt)
      case (SInt32, LongType) => long(_.zigzag())
      case (SFixed32, IntegerType) => int(_.fixed32())
      case (SFixed32, LongType) => long(_.fixed32())
      case (UInt32, LongType) => long(_.varint() & 0xffffffffL)
      case (Fixed32, LongType) => long(_.fixed32() & 0xffffffffL)
      case (Int64, LongType) => long(_.varint())
      case (SInt64, LongType) => long(_.zigzag())
      case (SFixed64, LongType) => long(_.fixed64())
      case (UInt64, _) => unsigned(_.varint())
      case (Fixed64, _) => unsigned(_.fixed64())
      case (Bool, BooleanType) => made(false, _.toBoolean)(_.varint() != 0)
      case (Float, FloatType) => made(0f, _.toFloat)(in => java.lang.Float.intBitsToFloat(in.fixed32()))
      case (Float, DoubleType) =>
        made(0d, _.toDouble)(in => java.lang.Float.intBitsToFloat(in.fixed32()).toDouble)
      case (Double, DoubleType) =>
        made(0d, _.toDouble)(in => java.lang.Double.longBitsToDouble(in.fixed64()))
      case (Text, _: StringType) => made(UTF8String.EMPTY_UTF8, UTF8String.fromString)(text(field))
      case (Bytes, BinaryType) => made(Array.emptyByteArray, _ => null)(_.bytes())
      case (Enum, _: StringType) =>
        val names = types.enumOf(field.typeName).map { case (n, name) => n -> UTF8String.fromString(name) }
        def name(n: Int) = names.getOrElse(n, UTF8String.fromString(n.toString))
        made(name(0), UTF8String.fromString)(in => name(in.varint().toInt))
      case (Enum, IntegerType) =>
        val numbers = types.enumOf(field.typeName).map(_.swap)
        made(0, numbers(_))(_.varint().toInt)
      case _ => None
    }
  }

  private def text(field: ProtoField)(in: ProtoBytes): UTF8String = {
    val bytes = in.bytes()
    if (!Utf8.isValid(bytes, 0, bytes.length)) refuse(s"the field '${field.name}' is not valid UTF-8")
    UTF8String.fromBytes(bytes)
  }
}
