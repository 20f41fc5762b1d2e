/** Owns which type of PostgreSQL holds which type of Spark, and in what form a value gets there. */
package org.apache.spark.sql.headgate.sinks.jdbc

import org.apache.spark.sql.types._

/** How a value is written: by its own type, or as JSON. */
private[headgate] object Form extends Enumeration {
  val Plain, Json = Value
}

/** A column of a table.
  *
  * @param shown its type as people write it, `numeric(10,2)` for instance
  * @param base the name of the type in the catalog, of a domain that of what it is made of
  * @param element of an array, the name of its elements' type
  * @param needed whether a row without it is refused
  * @param generated whether only the database gives it a value
  */
private[headgate] case class TableColumn(
    name: String,
    shown: String,
    base: String,
    element: Option[String],
    needed: Boolean,
    generated: Boolean)

private[headgate] object ColumnTypes {
  private val Integers = Set("int2", "int4", "int8", "numeric")
  private val Floats = Set("float4", "float8", "numeric")
  private val Documents = Set("jsonb", "json", "text", "varchar")

  /** The type of a column that is made for a Spark type; None if there is none. */
  def made(dataType: DataType): Option[String] = dataType match {
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

  /** How values get into a column; None if they do not fit there. */
  def form(dataType: DataType, column: TableColumn): Option[Form.Value] = dataType match {
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
