/** Owns the query that runs on a thread of the driver. */
package org.apache.spark.sql.headgate.spark

import java.util.UUID
import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.sql.{DataFrame => ApiFrame}
import org.apache.spark.sql.classic.DataFrame
import org.apache.spark.sql.connector.catalog.Table
import org.apache.spark.sql.connector.read.streaming.{Offset, SparkDataStream}
import org.apache.spark.sql.execution.streaming.runtime._
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, StreamingQueryListener, Trigger}
import org.apache.spark.sql.streaming.StreamingQueryListener._
import org.apache.spark.util.Clock

final class RunningQuery private[spark] (execution: StreamExecution) {
  def runId: UUID = execution.runId

  private[spark] def lastExecution: Option[IncrementalExecution] = Option(execution.lastExecution)

  /** What the offset log has of a batch, source by source; None if it has no such entry. */
  def offsetsOf(batch: Long): Option[Seq[String]] =
    execution.offsetLog.get(batch).map(_.offsets.map(_.fold("-")(_.json)).toSeq)

  /** Where each source was after the batch before, and where it is after the one that runs. */
  def offsetsBefore: Map[SparkDataStream, Offset] = execution.committedOffsets.toMap
  def offsetsNow: Map[SparkDataStream, Offset] = execution.availableOffsets.toMap

  /** By the query's own clock. */
  def nowMs: Long = execution.triggerClock.getTimeMillis()

  /** The watermark that the next batch will have; see [[RunningBatch.watermarkMs]]. */
  def nextWatermarkMs: Long = tracker.currentWatermark

  def raiseWatermark(to: Long): Unit = tracker.setWatermark(to)

  // protected in Scala, so not to be named from here
  private def tracker: WatermarkTracker = classOf[MicroBatchExecution].getMethod("watermarkTracker")
    .invoke(execution).asInstanceOf[WatermarkTracker]

  /** The number of the last batch, if it took rows. */
  def lastBatchWithRows: Option[Long] =
    Option(execution.lastProgress).filter(_.numInputRows > 0).map(_.batchId)

  /** Whether the last batch left records in a source. */
  def isBehind: Boolean = {
    val last = execution.lastProgress
    last != null && last.numInputRows > 0 &&
      last.sources.exists(s => s.latestOffset != null && s.endOffset != s.latestOffset)
  }

  /** Marks the query as ended: its trigger loop returns instead of planning another batch (as it does
    * at the end of an availableNow query). While a batch is planned the mark would not do:
    * MicroBatchExecution.runBatch interrupts itself then.
    */
  def end(): Unit = {
    // protected in Scala, so not to be named from here
    val state = classOf[StreamExecution].getMethod("state").invoke(execution)
    state.asInstanceOf[AtomicReference[State]].set(TERMINATED)
  }

  /** Does something once, when the query has ended. */
  def onEnd(body: => Unit): Unit = {
    val session = execution.sparkSession
    val id = runId
    session.streams.addListener(new StreamingQueryListener {
      override def onQueryStarted(event: QueryStartedEvent): Unit = ()
      override def onQueryProgress(event: QueryProgressEvent): Unit = ()
      override def onQueryTerminated(event: QueryTerminatedEvent): Unit =
        if (event.runId == id) {
          body
          session.streams.removeListener(this)
        }
    })
  }
}

object RunningQuery {

  /** The query that runs on this thread, if any. */
  def of(session: Session): Option[RunningQuery] =
    Option(session.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY)).flatMap { id =>
      Option(session.sharedState.activeStreamingQueries.get(UUID.fromString(id)))
    }.map(new RunningQuery(_))

  /** Starts a query with a clock of our own. */
  def start(df: ApiFrame, name: String, checkpoint: String, sink: Table, options: Map[String, String],
      trigger: Trigger, clock: Clock): StreamingQuery = {
    val session = Frames.session(df)
    val plans = KeptPlans.setting(session)
    StatusListeners.leaveOut(session)
    val query = QuerySettings.during(session, checkpoint, trigger) {
      session.sessionState.streamingQueryManager.startQuery(
        userSpecifiedName = Some(name), userSpecifiedCheckpointLocation = Some(checkpoint),
        df = df.asInstanceOf[DataFrame], extraOptions = options, sink = sink,
        outputMode = OutputMode.Append(), trigger = trigger, triggerClock = clock)
    }
    KeptPlans.serve(query, plans)
    query
  }
}
