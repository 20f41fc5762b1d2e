/** Owns which type of PostgreSQL holds which type of Spark. */
package org.apache.spark.sql.headgate.sinks.jdbc

import org.apache.spark.sql.types._

private[headgate] object PostgresTypes extends ColumnTypes {
  private val Integers = Set("int2", "int4", "int8", "numeric")
  private val Floats = Set("float4", "float8", "numeric")
  private val Documents = Set("jsonb", "json", "text", "varchar")

  override def made(dataType: DataType, inKey: Boolean): Option[String] = made(dataType)

  private def made(dataType: DataType): Option[String] = dataType match {
    case BooleanType => Some("boolean")
    case ByteType | ShortType => Some("smallint")
    case IntegerType => Some("integer")
    case LongType => Some("bigint")
    case FloatType => Some("real")
    case DoubleType => Some("double precision")
    case d: DecimalType => Some(s"numeric(${d.precision},${d.scale})")
    case _: StringType => Some("text")
    case BinaryType => Some("bytea")
    case DateType => Some("date")
    case TimestampType => Some("timestamptz")
    case TimestampNTZType => Some("timestamp")
    case ArrayType(element, _) => made(element).map {
      case "jsonb" => "jsonb"
      case array if array.endsWith("[]") => array
      case of => s"$of[]"
    }
    case StructType(fields) => if (fields.forall(f => made(f.dataType).isDefined)) Some("jsonb") else None
    case MapType(key, value, _) => made(key).flatMap(_ => made(value)).map(_ => "jsonb")
    case _ => None
  }

  override def form(dataType: DataType, column: TableColumn): Option[Form.Value] = dataType match {
    case a: ArrayType if column.element.isDefined =>
      if (fits(innermost(a), column.element.get)) Some(Form.Plain) else None
    case _: ArrayType | _: StructType | _: MapType =>
      if (Documents(column.base)) Some(Form.Json) else None
    case other => if (fits(other, column.base)) Some(Form.Plain) else None
  }

  private def innermost(dataType: DataType): DataType = dataType match {
    case ArrayType(element, _) => innermost(element)
    case other => other
  }

  private def fits(dataType: DataType, base: String): Boolean = dataType match {
    case BooleanType => base == "bool"
    case ByteType | ShortType | IntegerType | LongType => Integers(base) || Floats(base)
    case FloatType | DoubleType => Floats(base)
    case _: DecimalType => Floats(base)
    case _: StringType => true // the database reads the text
    case BinaryType => base == "bytea"
    case DateType => base == "date" || base == "timestamp"
    case TimestampType => base == "timestamptz"
    case TimestampNTZType => base == "timestamp"
    case _ => false
  }
}
