package org.apache.spark.sql.headgate.batch

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicReference

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.{State, StreamExecution, TERMINATED}

/**
 * Ends a query between two batches.
 *
 * StreamingQuery.stop interrupts the batch that is running. Here the end of a batch, when the
 * sinks have committed, marks the query as ended: the batch goes on to its commit, and the trigger
 * loop returns instead of planning another one (as it does at the end of an availableNow query).
 * Earlier in a batch the mark would not do: MicroBatchExecution.runBatch interrupts itself then.
 */
object StopAfterBatch {
  private val asked = ConcurrentHashMap.newKeySet[UUID]()

  def request(queryRunId: String): Unit = asked.add(UUID.fromString(queryRunId))

  /** Called on the query's thread after the sinks of a batch have committed. */
  def batchEnds(session: SparkSession, queryRunId: UUID): Unit =
    if (asked.remove(queryRunId)) running(session).foreach(end)

  /** Called on the query's thread while it waits for its next trigger; true if it need not. */
  def betweenBatches(session: SparkSession): Boolean =
    running(session).filter(q => asked.remove(q.runId)).map(end).isDefined

  private def running(session: SparkSession): Option[StreamExecution] =
    Option(session.sparkContext.getLocalProperty(StreamExecution.QUERY_ID_KEY)).flatMap { id =>
      Option(session.sharedState.activeStreamingQueries.get(UUID.fromString(id)))
    }

  private def end(query: StreamExecution): Unit = {
    // protected in Scala, so not to be named from here
    val state = classOf[StreamExecution].getMethod("state").invoke(query)
    state.asInstanceOf[AtomicReference[State]].set(TERMINATED)
  }

  def forget(queryRunId: UUID): Unit = asked.remove(queryRunId)
}
