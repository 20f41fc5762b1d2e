/** Owns Hadoop's settings of a query: they do not change while it runs. */
package org.apache.spark.sql.headgate.spark

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.conf.Configuration

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.util.SerializableConfiguration

/** Made and sent to the executors once a query, not once a step and batch: there are a thousand of them. */
object QueryHadoop {
  private val sent = new ConcurrentHashMap[UUID, Broadcast[SerializableConfiguration]]()

  /** Those of the query that runs on this thread, else the session's; not to be changed. */
  def of(session: Session): Configuration =
    ofQuery(session).fold(Sessions.hadoop(session))(_.value.value)

  def broadcast(session: Session): Broadcast[SerializableConfiguration] =
    ofQuery(session).getOrElse(Sessions.broadcastHadoop(session))

  private def ofQuery(session: Session): Option[Broadcast[SerializableConfiguration]] =
    RunningQuery.of(session).map(q => sent.computeIfAbsent(q.runId, _ => Sessions.broadcastHadoop(session)))

  /** Called when a query ended; Spark removes what nobody holds any more. */
  def forget(runId: UUID): Unit = sent.remove(runId)
}
