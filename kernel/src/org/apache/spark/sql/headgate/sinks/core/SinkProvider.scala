/** Owns the sinks of a job as a Spark data source that is written as a stream. */
package org.apache.spark.sql.headgate.sinks.core

import java.util.{EnumSet, Map => JMap, Set => JSet}

import org.apache.spark.sql.connector.catalog.{SupportsWrite, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.distributions.{Distribution, Distributions}
import org.apache.spark.sql.connector.expressions.{Expressions, SortDirection, SortOrder, Transform}
import org.apache.spark.sql.connector.write.{LogicalWriteInfo, RequiresDistributionAndOrdering, Write, WriteBuilder}
import org.apache.spark.sql.connector.write.streaming.StreamingWrite
import org.apache.spark.sql.headgate.spark.{Sessions, TakesUpdates}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Options: `spec` (see [[JobSpec]]) and `fsync` (default true: what is committed survives a power
  * cut). Columns: `__hg_sink INT`, then one struct per sink, of which only the named one is filled,
  * and perhaps `__hg_order` (see [[SinkSpec]]).
  */
class SinkProvider extends TableProvider {
  override def supportsExternalMetadata: Boolean = true

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = new StructType()

  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: JMap[String, String]): Table = new SinkTable(schema)
}

private final class SinkTable(columns: StructType) extends Table with SupportsWrite {
  override def name: String = "headgate"

  override def schema: StructType = columns

  override def capabilities: JSet[TableCapability] =
    EnumSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA)

  override def newWriteBuilder(info: LogicalWriteInfo): WriteBuilder = {
    val spec = JobSpec.parse(info.options.get("spec"))
    val fsync = info.options.getBoolean("fsync", true)
    new WriteBuilder with TakesUpdates {
      override def build(): Write = new Write with RequiresDistributionAndOrdering {
        override def toStreaming: StreamingWrite =
          new SinkWrite(Sessions.active, spec, info.schema, fsync)

        override def requiredDistribution: Distribution = Distributions.unspecified()
        override def requiredOrdering: Array[SortOrder] = SinkOrder.of(spec, info.schema)
      }
    }
  }
}

/** The order of a task's rows, for sinks that number them: by the sink, then by all of the row, so
  * that every attempt gives each row the same number. A shuffle does not repeat its order; rows that
  * are equal in all columns may change places. Spark sorts within the task, and spills if it must.
  * Rows of the other sinks stay in their order, by a column that has their places.
  */
private object SinkOrder {
  def of(spec: JobSpec, schema: StructType): Array[SortOrder] = {
    val structs = schema.fieldNames.tail
    val ordered = spec.sinks.indices.filter(spec.sinks(_).options.ordered).map(structs(_))
    val others = structs.filter(_ == SinkSpec.OrderColumn)
    if (ordered.isEmpty) Array.empty
    else (SinkSpec.SinkColumn +: (ordered ++ others)).toArray
      .map(name => Expressions.sort(Expressions.column(name), SortDirection.ASCENDING))
  }
}
