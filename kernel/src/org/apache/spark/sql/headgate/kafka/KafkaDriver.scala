/** Owns the driver's side of a job's Kafka sinks. */
package org.apache.spark.sql.headgate.kafka

import java.util.UUID

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.headgate.sink.JobSpec
import org.apache.spark.sql.streaming.StreamingQueryListener
import org.apache.spark.sql.streaming.StreamingQueryListener._

/** Called by the sink only if there is a Kafka sink: the classes of Kafka's client may be missing. */
object KafkaDriver {

  /** What the tasks of a query that starts have to know, by group. */
  def start(spec: JobSpec, start: String, tasks: Int): Array[GroupPlan] =
    KafkaGroup.of(spec).map { group =>
      Admins.use(group.client)(admin => new GroupStart(group, admin).plan(start, tasks))
    }.toArray

  /** By sink, the last batch of the run that any task has out, or -1. */
  def committed(spec: JobSpec): Map[String, Long] =
    KafkaGroup.of(spec).flatMap { group =>
      val last = Admins.use(group.client)(admin => new GroupStart(group, admin).lastBatch())
      group.sinks.keys.map(i => spec.sinks(i).name -> last)
    }.toMap

  /** Closes this process's producers when the query ends; on executors they are closed when idle. */
  def closeAtEnd(session: SparkSession, queryRunId: UUID, start: String): Unit =
    session.streams.addListener(new StreamingQueryListener {
      override def onQueryStarted(event: QueryStartedEvent): Unit = ()
      override def onQueryProgress(event: QueryProgressEvent): Unit = ()
      override def onQueryTerminated(event: QueryTerminatedEvent): Unit =
        if (event.runId == queryRunId) {
          Producers.closeOf(start)
          session.streams.removeListener(this)
        }
    })
}
