/** Owns the source without rows that lets a restarted query look at its timers at once. */
package org.apache.spark.sql.headgate.tick

import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Spark asks the last batch's operators whether another batch is needed, but a query that was just
 * started has no last batch (MicroBatchExecution.constructNextBatch): rows whose time ran out while
 * the job was down would wait for new input. This source has one new offset, and no row, a start.
 */
class TickSourceProvider extends TableProvider {
  override def inferSchema(o: CaseInsensitiveStringMap): StructType = TickSource.schema
  override def getTable(s: StructType, p: Array[Transform], o: util.Map[String, String]): Table = new TickTable
}

object TickSource {
  val schema: StructType = new StructType().add("tick", LongType)
}

private final class TickTable extends Table with SupportsRead {
  override def name(): String = "headgate-tick"
  override def schema(): StructType = TickSource.schema
  override def capabilities(): util.Set[TableCapability] = Set(TableCapability.MICRO_BATCH_READ).asJava
  override def newScanBuilder(o: CaseInsensitiveStringMap): ScanBuilder = () => new Scan {
    override def readSchema(): StructType = TickSource.schema
    override def toMicroBatchStream(checkpoint: String): MicroBatchStream = new TickStream
  }
}

private final case class TickOffset(n: Long) extends Offset {
  override def json(): String = s"""{"tick":$n}"""
}

private final class TickStream extends MicroBatchStream with SupportsTriggerAvailableNow {
  private var ticked = false

  override def initialOffset(): Offset = TickOffset(0)
  override def deserializeOffset(json: String): Offset =
    TickOffset(json.filter(_.isDigit).toLong)
  override def prepareForTriggerAvailableNow(): Unit = ()
  override def latestOffset(): Offset = throw new UnsupportedOperationException("needs a start")
  override def latestOffset(start: Offset, limit: ReadLimit): Offset =
    if (ticked) start else { ticked = true; TickOffset(start.asInstanceOf[TickOffset].n + 1) }
  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = Array.empty
  override def createReaderFactory(): PartitionReaderFactory =
    (_: InputPartition) => throw new IllegalStateException("there are no partitions")
  override def commit(end: Offset): Unit = ()
  override def stop(): Unit = ()
}
