package org.apache.spark.sql.headgate.batch

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.headgate.spark.{RunningQuery, Session}
import org.apache.spark.util.{Clock, SystemClock}

/**
 * The clock of a job's query: processing time, and how long a trigger waits.
 *
 * Spark's trigger waits for the next multiple of its interval even when a source had more than one
 * batch may take, so a job that is behind would stay behind. Here it goes on at once while any
 * source has records left; a stop or a requested checkpoint does not wait either.
 */
final class JobClock(session: Session) extends Clock {
  private val system = new SystemClock
  private val offset = JobClock.offset(session)

  override def getTimeMillis(): Long = system.getTimeMillis() + offset
  override def nanoTime(): Long = system.nanoTime()

  override def waitTillTime(target: Long): Long = {
    var now = getTimeMillis()
    while (now < target && !behind && !StopAfterBatch.betweenBatches(session) && !triggerRequested) {
      Thread.sleep(math.min(JobClock.LookEveryMs, target - now))
      now = getTimeMillis()
    }
    now
  }

  private def triggerRequested: Boolean =
    RunningQuery.of(session).exists(query => JobClock.requested.remove(query.runId))

  private def behind: Boolean = RunningQuery.of(session).exists(_.isBehind)
}

object JobClock {
  /** Tests move processing time on with this setting instead of sleeping. */
  val OffsetKey = "spark.headgate.clock.offset.ms"
  private val LookEveryMs = 50L
  private val requested = ConcurrentHashMap.newKeySet[UUID]()

  /** Lets the query's next trigger begin now. */
  def triggerNow(queryRunId: String): Unit = requested.add(UUID.fromString(queryRunId))

  def offset(session: Session): Long = session.conf.getOption(OffsetKey).fold(0L)(_.toLong)
}
