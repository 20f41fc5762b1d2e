/** Owns which Delta tables take a Parquet file as it is. */
package org.apache.spark.sql.headgate.sinks.delta

import org.apache.spark.sql.delta.NoMapping
import org.apache.spark.sql.delta.actions.{Metadata => TableMetadata, Protocol}
import org.apache.spark.sql.delta.constraints.Constraints
import org.apache.spark.sql.headgate.spark.Session
import org.apache.spark.sql.types._

private object PlainTable {
  /** Features that ask nothing of the files that are added. */
  private val Harmless = Set("appendOnly", "invariants", "deletionVectors", "domainMetadata", "timestampNtz",
    "v2Checkpoint", "vacuumProtocolCheck", "inCommitTimestamp", "inCommitTimestamp-preview", "changeDataFeed",
    "checkConstraints", "generatedColumns")

  /** Without partitions, constraints, computed columns, and names of columns that are not those of the files:
    * all of that Delta's own writer sees to.
    */
  def is(metadata: TableMetadata, protocol: Protocol, session: Session): Boolean =
    metadata.partitionColumns.isEmpty && metadata.columnMappingMode == NoMapping &&
      protocol.implicitlyAndExplicitlySupportedFeatures.map(_.name).subsetOf(Harmless) &&
      Constraints.getAll(metadata, session).isEmpty && isBare(metadata.schema)

  /** Whether no column says more than its name and type, as those that are computed do. */
  private def isBare(dataType: DataType): Boolean = dataType match {
    case s: StructType => s.fields.forall(f => f.nullable && f.metadata == Metadata.empty && isBare(f.dataType))
    case a: ArrayType => isBare(a.elementType)
    case m: MapType => isBare(m.keyType) && isBare(m.valueType)
    case _ => true
  }
}
