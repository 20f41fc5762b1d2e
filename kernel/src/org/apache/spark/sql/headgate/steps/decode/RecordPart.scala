/** Owns what a record has besides its value, and may give as columns. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.sql.types._

/** A part of a record: the name of its raw column, and the types that a column of it may have. */
sealed abstract class RecordPart(val name: String, types: DataType*) {
  def fits(t: DataType): Boolean = types.exists(DataType.equalsIgnoreNullability(t, _))
  def expected: String = types.map(_.sql).mkString(" or ")
}

object RecordPart {
  case object Key extends RecordPart("key", StringType, BinaryType)
  case object Topic extends RecordPart("topic", StringType)
  case object Partition extends RecordPart("partition", IntegerType)
  case object Offset extends RecordPart("offset", LongType)
  case object Timestamp extends RecordPart("timestamp", TimestampType)
  case object Headers extends RecordPart("headers", HeadersType)
  case object Properties extends RecordPart("properties", PropertiesType)
  case object EventTime extends RecordPart("event_time", TimestampType)
  case object MessageId extends RecordPart("message_id", StringType)

  lazy val HeadersType: ArrayType =
    ArrayType(new StructType().add("key", StringType).add("value", BinaryType))
  lazy val PropertiesType: MapType = MapType(StringType, StringType)

  val All: Seq[RecordPart] =
    Seq(Key, Topic, Partition, Offset, Timestamp, Headers, Properties, EventTime, MessageId)

  /** The parts for these columns, given as (column's name, part's name); refuses what cannot be. */
  def of(columns: Seq[StructField], parts: Seq[Seq[String]]): Seq[RecordPart] = {
    def refuse(why: String) = throw new IllegalArgumentException(why)
    if (columns.map(_.name) != parts.map(_.head)) {
      refuse(s"the last columns are ${columns.map(_.name).mkString(", ")}, " +
        s"not the metadata's ${parts.map(_.head).mkString(", ")}")
    }
    columns.zip(parts.map(_.last)).map { case (column, name) =>
      val part = All.find(_.name == name)
        .getOrElse(refuse(s"a record has no '$name'"))
      if (!part.fits(column.dataType)) {
        refuse(s"the column '${column.name}' is the record's $name, a ${part.expected}, " +
          s"not a ${column.dataType.sql}")
      }
      part
    }
  }
}
