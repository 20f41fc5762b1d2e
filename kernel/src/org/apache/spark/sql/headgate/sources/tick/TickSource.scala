/** Owns the source without rows that lets a restarted query look at its timers at once. */
package org.apache.spark.sql.headgate.sources.tick

import java.util

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.headgate.spark.Sessions
import org.apache.spark.sql.headgate.time.{Drained, EndsTime, JobTimes}
import org.apache.spark.sql.types.{LongType, StructType}
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/**
 * Spark asks the last batch's operators whether another batch is needed, but a query that was just
 * started has no last batch (MicroBatchExecution.constructNextBatch): rows whose time ran out while
 * the job was down would wait for new input. This source has one new offset, and no row, a start; and
 * one when a source seems to have become idle.
 *
 * In a drain it has one for every batch, and ends event time after a batch in which no other source
 * moved: such a query reads up to where its sources were when it began, and that is reached then.
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
    override def toMicroBatchStream(checkpoint: String): MicroBatchStream =
      new TickStream(Drained.isWanted)
  }
}

/** @param drained whether the batch that ends here, or one before it, was the last of event time */
private final case class TickOffset(n: Long, drained: Boolean) extends Offset {
  override def json(): String = s"""{"tick":$n${if (drained) ",\"drained\":true" else ""}}"""
}

private object TickOffset {
  def parse(json: String): TickOffset =
    TickOffset(json.filter(_.isDigit).toLong, json.contains("drained"))
}

private[tick] final class TickStream(drain: Boolean)
  extends MicroBatchStream with SupportsTriggerAvailableNow with EndsTime {
  private var ticked = false

  override def initialOffset(): Offset = TickOffset(0, drained = false)
  override def deserializeOffset(json: String): Offset = TickOffset.parse(json)
  override def isDrained(offset: Offset): Boolean = TickOffset.parse(offset.json()).drained
  override def prepareForTriggerAvailableNow(): Unit = ()
  override def latestOffset(): Offset = throw new UnsupportedOperationException("needs a start")
  override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
    val session = Sessions.active
    val from = start.asInstanceOf[TickOffset]
    val draining = drain && !from.drained
    val first = !ticked
    if (first) JobTimes.begins(session)
    if (ticked && !draining && (from.drained || !JobTimes.batchNeeded(session))) start
    else {
      ticked = true
      // before the first time only a batch of an earlier start can have run again, which says
      // nothing of what there is to read now
      TickOffset(from.n + 1, from.drained || draining && !first && Drained.atTheEnd(session))
    }
  }
  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = Array.empty
  override def createReaderFactory(): PartitionReaderFactory =
    (_: InputPartition) => throw new IllegalStateException("there are no partitions")
  override def commit(end: Offset): Unit = ()
  override def stop(): Unit = ()
}
