/** Owns which type of MySQL and MariaDB holds which type of Spark. */
package org.apache.spark.sql.headgate.sinks.jdbc

import org.apache.spark.sql.types._

/** A type fits if the server changes no value on its way without saying so: it rounds numbers and cuts
  * times in strict mode too.
  */
private[headgate] object MySqlTypes extends ColumnTypes {
  private val Integers = Set("tinyint", "smallint", "mediumint", "int", "bigint")
  private val Texts = Set("varchar", "char", "tinytext", "text", "mediumtext", "longtext")
  private val Documents = Texts + "json"
  /** Those that read a text, or refuse it. */
  private val ReadTexts = Documents ++ Set("enum", "uuid", "inet4", "inet6")
  private val Bytes = Set("varbinary", "binary", "tinyblob", "blob", "mediumblob", "longblob")

  private val MostDecimals = 30
  /** Three such columns and a number fit into an index. */
  private val KeyChars = 255

  override def made(dataType: DataType, inKey: Boolean): Option[String] = dataType match {
    case BooleanType => Some("boolean")
    case ByteType => Some("tinyint")
    case ShortType => Some("smallint")
    case IntegerType => Some("int")
    case LongType => Some("bigint")
    case FloatType => Some("float")
    case DoubleType => Some("double")
    case d: DecimalType => if (d.scale <= MostDecimals) Some(s"decimal(${d.precision},${d.scale})") else None
    case _: StringType => Some(if (inKey) s"varchar($KeyChars)" else "longtext")
    case BinaryType => Some(if (inKey) s"varbinary($KeyChars)" else "longblob")
    case DateType => Some("date")
    case TimestampType | TimestampNTZType => Some("datetime(6)")
    case _ if inKey => None
    case other => if (isDocument(other)) Some("json") else None
  }

  private def isDocument(dataType: DataType): Boolean = dataType match {
    case ArrayType(element, _) => isPart(element)
    case StructType(fields) => fields.forall(f => isPart(f.dataType))
    case MapType(key, value, _) => isPart(key) && isPart(value)
    case _ => false
  }

  private def isPart(dataType: DataType): Boolean = made(dataType, inKey = false).isDefined

  override def form(dataType: DataType, column: TableColumn): Option[Form.Value] = {
    val base = column.base
    def plain(fits: Boolean) = if (fits) Some(Form.Plain) else None
    dataType match {
      case BooleanType => plain(base == "tinyint" || base == "bit")
      case ByteType | ShortType | IntegerType | LongType =>
        plain(Integers(base) || base == "decimal" || base == "double")
      case FloatType | DoubleType => plain(base == "float" || base == "double")
      case d: DecimalType => plain(base == "double" || base == "decimal" && column.digits >= d.scale)
      case _: StringType => plain(ReadTexts(base))
      case BinaryType => plain(Bytes(base))
      case DateType => plain(base == "date" || base == "datetime")
      case TimestampType => plain(base == "datetime" || base == "timestamp")
      case TimestampNTZType => plain(base == "datetime")
      case other => if (isDocument(other) && Documents(base)) Some(Form.Json) else None
    }
  }
}
