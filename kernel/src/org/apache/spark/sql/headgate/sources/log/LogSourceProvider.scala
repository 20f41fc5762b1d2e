/** Owns the log topic as a Spark data source, read in batch or as a stream. */
package org.apache.spark.sql.headgate.sources.log

import java.util.{EnumSet, Map => JMap, Set => JSet}

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Options: `path`, `starting` (earliest, latest, or milliseconds since 1970; default earliest),
  * `max_records` (the most a batch takes; default 0, no limit).
  */
class LogSourceProvider extends TableProvider {
  override def inferSchema(options: CaseInsensitiveStringMap): StructType = RawRow.schema

  override def getTable(
      schema: StructType,
      partitioning: Array[Transform],
      properties: JMap[String, String]): Table = new LogTable
}

private final class LogTable extends Table with SupportsRead {
  override def name: String = "log"

  override def schema: StructType = RawRow.schema

  override def capabilities: JSet[TableCapability] =
    EnumSet.of(TableCapability.MICRO_BATCH_READ, TableCapability.BATCH_READ)

  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val wanted = LogOptions(
      options.get("path"),
      options.getOrDefault("starting", "earliest"),
      options.getLong("max_records", 0L))
    () => new LogScan(wanted)
  }
}

private final class LogScan(options: LogOptions) extends Scan {
  override def readSchema: StructType = RawRow.schema

  override def description: String = s"log:${options.path}"

  override def columnarSupportMode: Scan.ColumnarSupportMode = Scan.ColumnarSupportMode.UNSUPPORTED

  override def toMicroBatchStream(checkpointLocation: String): MicroBatchStream =
    new LogStream(options, checkpointLocation)

  /** All that is there now, from `starting` on. */
  override def toBatch: Batch = new Batch {
    override def planInputPartitions(): Array[InputPartition] = {
      val stream = new LogStream(options, metadataPath = "")
      stream.prepareForTriggerAvailableNow()
      val start = stream.initialOffset
      val end = stream.latestOffset(start, streaming.ReadLimit.allAvailable())
      stream.planInputPartitions(start, end)
    }

    override def createReaderFactory(): PartitionReaderFactory = SegmentReaderFactory
  }
}
