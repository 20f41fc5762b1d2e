/** Owns the raw row of a topic connector: its columns, and a row that is filled without boxing. */
package org.apache.spark.sql.headgate.sources.log

import org.apache.spark.sql.catalyst.expressions.{BaseGenericInternalRow, GenericInternalRow}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** A record as it came: key, value (null = deletion), partition, offset, timestamp. */
final class RawRow(partition: Int) extends BaseGenericInternalRow {
  var key: UTF8String = _
  var value: UTF8String = _
  var offset: Long = 0L
  var timestamp: Long = 0L

  override def numFields: Int = 5

  override def isNullAt(i: Int): Boolean = (i == 0 && key == null) || (i == 1 && value == null)

  override def getUTF8String(i: Int): UTF8String = if (i == 1) value else key

  override def getInt(i: Int): Int = partition

  override def getLong(i: Int): Long = if (i == 3) offset else timestamp

  override protected def genericGet(i: Int): Any = i match {
    case 0 => key
    case 1 => value
    case 2 => partition
    case 3 => offset
    case 4 => timestamp
  }

  override def setNullAt(i: Int): Unit = throw new UnsupportedOperationException("read only")

  override def update(i: Int, v: Any): Unit = throw new UnsupportedOperationException("read only")

  override def copy(): GenericInternalRow = new GenericInternalRow(Array[Any](
    if (key == null) null else key.copy(), if (value == null) null else value.copy(),
    partition, offset, timestamp))
}

object RawRow {
  val schema: StructType = new StructType()
    .add("key", StringType)
    .add("value", StringType)
    .add("partition", IntegerType, nullable = false)
    .add("offset", LongType, nullable = false)
    .add("timestamp", TimestampType, nullable = false)
}
