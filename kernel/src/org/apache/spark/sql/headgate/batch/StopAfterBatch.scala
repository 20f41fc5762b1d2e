package org.apache.spark.sql.headgate.batch

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.headgate.spark.{RunningQuery, Session}

/**
 * Ends a query between two batches.
 *
 * StreamingQuery.stop interrupts the batch that is running. Here the end of a batch, when the
 * sinks have committed, marks the query as ended ([[RunningQuery.end]]): the batch goes on to its commit,
 * and no other one is planned.
 */
object StopAfterBatch {
  private val requested = ConcurrentHashMap.newKeySet[UUID]()

  def request(queryRunId: String): Unit = {
    requested.add(UUID.fromString(queryRunId))
    JobClock.ring()
  }

  /** Called on the query's thread after the sinks of a batch have committed. */
  def batchEnds(session: Session, queryRunId: UUID): Unit =
    if (requested.remove(queryRunId)) RunningQuery.of(session).foreach(_.end())

  /** Called on the query's thread while it waits for its next trigger; true if it need not. */
  def betweenBatches(session: Session): Boolean =
    RunningQuery.of(session).filter(q => requested.remove(q.runId)).map(_.end()).isDefined

  def forget(queryRunId: UUID): Unit = requested.remove(queryRunId)
}
