/** Owns the event time of the queries that run, and its way into Spark's offset log. */
package org.apache.spark.sql.headgate.time

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.headgate.spark.{RunningBatch, RunningQuery, Session, Sessions}

/**
 * The job's watermark is handed to Spark's WatermarkTracker, which without a node of Spark's own
 * keeps what it is given: so it stands in the offset log with the batch that uses it, and in the
 * commit log for the batch after. A replayed batch finds it there and decides nothing anew.
 */
object JobTimes {
  private val Key = "spark.headgate.event.time"
  /** Tests move watermarks on with this setting instead of sending rows. */
  private val AdvanceKey = "spark.headgate.watermarks"
  private val runs = new ConcurrentHashMap[UUID, JobTime]()

  /** The event time of the query that runs on this thread; none if no source of it has one. */
  def of(session: Session): Option[JobTime] =
    RunningQuery.of(session).flatMap(q => Option(runs.computeIfAbsent(q.runId, _ => made)))

  private def made: JobTime = {
    val conf = Sessions.active.conf // that of the query's thread, a copy made when it was started
    conf.getOption(Key).map(JobTime.parse(_, conf.get(AdvanceKey, "{}"))).orNull
  }

  /** Called before the first batch of a query: other sources may count than did in its last. */
  def begins(session: Session): Unit =
    for (query <- RunningQuery.of(session); time <- of(session)) raise(query, time)

  /**
   * Whether a batch is needed to find a source idle. The watermark rises with its end: Spark wants
   * that of a batch unchanged once it has thought about running it (PropagateWatermarkSimulator).
   */
  def batchNeeded(session: Session): Boolean = {
    val found = for {
      query <- RunningQuery.of(session)
      time <- of(session)
      mark <- time.watermarkIfStill(query.nowMs)
    } yield mark > query.nextWatermarkMs
    found.getOrElse(false)
  }

  /** Called when the sinks of a batch have committed, before Spark does; JSON for the journal. */
  def batchEnds(session: Session): Option[String] =
    for {
      query <- RunningQuery.of(session)
      time <- of(session)
      batch <- RunningBatch.of(session)
    } yield {
      time.batchEnds(batch.timeMs)
      raise(query, time)
      time.toJson(batch.watermarkMs, query.nextWatermarkMs, Drained.of(session).now)
    }

  private def raise(query: RunningQuery, time: JobTime): Unit =
    time.watermark.filter(_ > query.nextWatermarkMs).foreach(query.raiseWatermark)

  /** A query copies its session's settings when it is made. */
  def starting[T](session: Session, text: String)(start: => T): T = {
    if (text.nonEmpty) session.conf.set(Key, text)
    try start finally session.conf.unset(Key)
  }

  def forget(runId: UUID): Unit = runs.remove(runId)
}
