/** Owns the driver's side of a job's Kafka sinks. */
package org.apache.spark.sql.headgate.kafka

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.headgate.RunningBatch
import org.apache.spark.sql.headgate.sink.JobSpec
import org.apache.spark.sql.streaming.StreamingQueryListener
import org.apache.spark.sql.streaming.StreamingQueryListener._

/** Called by the sink only if there is a Kafka sink: the classes of Kafka's client may be missing. */
object KafkaDriver {
  private val started = new ConcurrentHashMap[UUID, Array[GroupPlan]]()

  /** What the tasks of a batch have to know, by group; made once for each start of a query.
    *
    * Spark makes the write anew for every batch (V2Writes, WriteToMicroBatchDataSource), so what
    * lives as long as the query does is kept here.
    *
    * @param tasks how many tasks the batch has
    */
  def plans(session: SparkSession, spec: JobSpec, tasks: Int): Array[GroupPlan] =
    RunningBatch.query(session) match {
      case None => start(spec, UUID.randomUUID(), tasks)
      case Some(query) =>
        Option(started.get(query.runId)).getOrElse {
          val made = start(spec, query.runId, tasks)
          started.put(query.runId, made)
          query.sparkSession.streams.addListener(new AtEnd(query.sparkSession, query.runId))
          made
        }
    }

  private def start(spec: JobSpec, id: UUID, tasks: Int): Array[GroupPlan] =
    KafkaGroup.of(spec).map { group =>
      Admins.use(group.client)(admin => new GroupStart(group, admin).plan(id.toString, tasks))
    }.toArray

  /** By sink, the last batch of the run that any task has out, or -1. */
  def committed(spec: JobSpec): Map[String, Long] =
    KafkaGroup.of(spec).flatMap { group =>
      val last = Admins.use(group.client)(admin => new GroupStart(group, admin).lastBatch())
      group.sinks.keys.map(i => spec.sinks(i).name -> last)
    }.toMap

  /** Forgets a query; on executors, producers are closed when they have been idle for long. */
  private final class AtEnd(session: SparkSession, queryRunId: UUID) extends StreamingQueryListener {
    override def onQueryStarted(event: QueryStartedEvent): Unit = ()
    override def onQueryProgress(event: QueryProgressEvent): Unit = ()
    override def onQueryTerminated(event: QueryTerminatedEvent): Unit =
      if (event.runId == queryRunId) {
        started.remove(queryRunId)
        Producers.closeOf(queryRunId.toString)
        session.streams.removeListener(this)
      }
  }
}
