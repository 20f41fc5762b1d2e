/** Owns the source without rows that lets a restarted query look at its timers at once. */
package org.apache.spark.sql.headgate.tick

import java.util
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamProgress
import org.apache.spark.sql.headgate.RunningBatch
import org.apache.spark.sql.headgate.time.JobTimes
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
      new TickStream(Drained.asked)
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
  extends MicroBatchStream with SupportsTriggerAvailableNow {
  private var ticked = false

  override def initialOffset(): Offset = TickOffset(0, drained = false)
  override def deserializeOffset(json: String): Offset = TickOffset.parse(json)
  override def prepareForTriggerAvailableNow(): Unit = ()
  override def latestOffset(): Offset = throw new UnsupportedOperationException("needs a start")
  override def latestOffset(start: Offset, limit: ReadLimit): Offset = {
    val session = SparkSession.active
    val from = start.asInstanceOf[TickOffset]
    val draining = drain && !from.drained
    if (!ticked) JobTimes.begins(session)
    if (ticked && !draining && (from.drained || !JobTimes.batchNeeded(session))) start
    else {
      ticked = true
      TickOffset(from.n + 1, from.drained || draining && Drained.atTheEnd(session))
    }
  }
  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = Array.empty
  override def createReaderFactory(): PartitionReaderFactory =
    (_: InputPartition) => throw new IllegalStateException("there are no partitions")
  override def commit(end: Offset): Unit = ()
  override def stop(): Unit = ()
}

/**
 * Whether event time has ended: with a batch before the one that runs, or with it.
 *
 * It stands in the source's offset and so in the offset log: a replayed batch closes the same
 * windows, and rows that come in a later start find all of them closed.
 */
case class Drained(before: Boolean, now: Boolean)

object Drained {
  private val Key = "spark.headgate.drain"
  /** Query runs in whose last batch no source moved but this one. */
  private val still = ConcurrentHashMap.newKeySet[UUID]()

  def of(session: SparkSession): Drained = RunningBatch.query(session) match {
    case Some(q) => Drained(in(q.committedOffsets), in(q.availableOffsets))
    case None => Drained(before = false, now = false)
  }

  /** Called on the query's thread while a batch ends. */
  def batchEnds(session: SparkSession): Unit = RunningBatch.query(session).foreach { q =>
    val moved = q.availableOffsets.exists {
      case (_: TickStream, _) => false
      case (source, end) => !q.committedOffsets.get(source).contains(end)
    }
    if (moved) still.remove(q.runId) else still.add(q.runId)
  }

  private[tick] def atTheEnd(session: SparkSession): Boolean =
    RunningBatch.query(session).exists(q => still.contains(q.runId))

  def forget(runId: UUID): Unit = still.remove(runId)

  private def in(offsets: StreamProgress): Boolean = offsets.exists {
    case (_: TickStream, offset) => TickOffset.parse(offset.json()).drained
    case _ => false
  }

  /** A query copies its session's settings when it is made, and has its sources made later. */
  def starting[T](session: SparkSession, drain: Boolean)(start: => T): T = {
    session.conf.set(Key, drain.toString)
    try start finally session.conf.unset(Key)
  }

  private[tick] def asked: Boolean = SparkSession.active.conf.get(Key, "false").toBoolean
}
