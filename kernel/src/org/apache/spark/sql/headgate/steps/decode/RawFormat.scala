/** Owns values that are taken as they are. */
package org.apache.spark.sql.headgate.steps.decode

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.types.{StringType, StructType}

/** The value as it is, in one column. */
case object RawFormat extends ValueFormat with FormatKind {
  override def name: String = "raw"

  override def of(root: JsonNode, columns: StructType): ValueFormat = {
    if (columns.length != 1 || !RecordPart.Key.fits(columns.head.dataType)) {
      throw new IllegalArgumentException(
        s"format raw gives one STRING or BINARY column, not ${columns.sql}")
    }
    this
  }

  override def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder =
    new RawValue(mustBeText = !isText && columns.head.dataType.isInstanceOf[StringType])
}
