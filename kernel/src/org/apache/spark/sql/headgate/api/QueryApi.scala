/** Owns a job's query as Python calls it: start, stop, fence, the probe of the home, crashes for tests. */
package org.apache.spark.sql.headgate.api

import java.util.UUID

import com.fasterxml.jackson.databind.node.JsonNodeFactory
import org.apache.hadoop.conf.Configuration

import org.apache.spark.sql.{DataFrame => ApiFrame, SparkSession => ApiSession}
import org.apache.spark.sql.headgate.batch.{BatchGuards, JobClock, OnceABatch, StopAfterBatch}
import org.apache.spark.sql.headgate.commit.{Fence, HomeProbe}
import org.apache.spark.sql.headgate.counters.{Counters, StageTimes}
import org.apache.spark.sql.headgate.sinks.core.{JobSpec, SinkProvider}
import org.apache.spark.sql.headgate.sinks.python.{PythonBatchWriter, PythonWriters}
import org.apache.spark.sql.headgate.spark.{Frames, QueryHadoop, RunningQuery, Sessions}
import org.apache.spark.sql.headgate.testing.Failpoints
import org.apache.spark.sql.headgate.time.{Drained, JobTimes}
import org.apache.spark.sql.streaming.{StreamingQuery, Trigger}

object QueryApi {

  /** The settings of Spark's application as a JSON object. */
  def settings(session: ApiSession): String = {
    val json = JsonNodeFactory.instance.objectNode()
    Sessions.of(session).sparkContext.getConf.getAll.foreach { case (name, value) => json.put(name, value) }
    json.toString
  }

  /**
   * Starts a job's query; everyMs < 0: it ends when it has read what is there; 0: batches follow on each
   * other while there is input.
   *
   * @param drain     when all is read, a last batch ends event time: every window is closed
   * @param eventTime the sources that have event time, see JobTime; empty if there is none
   */
  def start(df: ApiFrame, name: String, checkpoint: String, spec: String, everyMs: Long,
      drain: Boolean, eventTime: String): StreamingQuery = {
    val session = Frames.session(df)
    StageTimes.listenTo(session.sparkContext)
    val sink = new SinkProvider().getTable(df.schema, Array.empty, new java.util.HashMap[String, String]())
    JobTimes.starting(session, eventTime)(Drained.starting(session, drain)(
      RunningQuery.start(df, name, checkpoint, sink, Map("spec" -> spec),
        // with no interval at all Spark never asks the clock, and so would not see a stop while it is idle
        if (everyMs < 0) Trigger.AvailableNow() else Trigger.ProcessingTime(math.max(1L, everyMs)),
        new JobClock(session, everyMs))))
  }

  /** Lets Python write the batches of one sink of a run, in place of who did so before. */
  def writeWith(spec: String, sink: String, writer: PythonBatchWriter): Unit = {
    val job = JobSpec.parse(spec)
    job.sinks.filter(_.name == sink).foreach(s => PythonWriters.put(job.writerId(s), writer))
  }

  /**
   * What a query has reported since a trigger, as a JSON array, oldest first, each with the stages of its
   * batch. The time is needed as well as the number: an idle trigger reports under the number of the next batch.
   */
  def progressAfter(query: StreamingQuery, batch: Long, triggered: String): String =
    query.recentProgress.reverseIterator
      .takeWhile(report => report.batchId > batch || report.batchId == batch && report.timestamp != triggered)
      .map(report => s"""{"progress":${report.json},"stages":${StageTimes.json(query.runId, report.batchId)}}""")
      .toSeq.reverse.mkString("[", ",", "]")

  /** Lets the running batch of a query end, and starts no other. */
  def stopAfterBatch(queryRunId: String): Unit = StopAfterBatch.request(queryRunId)

  /** Lets the query's next trigger begin now. */
  def triggerNow(queryRunId: String): Unit = JobClock.triggerNow(queryRunId)

  def fence(session: ApiSession, sparkFolder: String, lockFile: String, jobFile: String,
      token: String): Unit = Fence.register(sparkFolder, lockFile, jobFile, token, hadoop(session))

  def unfence(session: ApiSession, sparkFolder: String): Unit = {
    BatchGuards.remove(sparkFolder, hadoop(session))
    Fence.unregister(sparkFolder, hadoop(session))
  }

  /** Until no process is in a section of the job: false if one still is after `timeoutMs`. */
  def awaitSections(lockFile: String, timeoutMs: Long): Boolean = Fence.await(lockFile, timeoutMs)

  /** @param folder a new folder in the home */
  def homeProbe(session: ApiSession, folder: String, nonce: String): HomeProbe =
    HomeProbe.create(session, folder, nonce)

  /** Makes the run's next batch die at a point of its commit. */
  def armCrash(run: String, point: String): Unit = Failpoints.arm(run, point)

  def disarmCrash(run: String): Unit = Failpoints.disarm(run)

  /** Drops what is kept of a query that ended. */
  def forget(runId: String): Unit = {
    val id = UUID.fromString(runId)
    Counters.forget(id); StageTimes.forget(id); OnceABatch.forget(id); StopAfterBatch.forget(id)
    JobTimes.forget(id); Drained.forget(id); QueryHadoop.forget(id)
  }

  private def hadoop(session: ApiSession): Configuration =
    Sessions.hadoop(Sessions.of(session))
}
