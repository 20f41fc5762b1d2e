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
    // whoever asks for something rings, and must not do so between a look and the wait
    JobClock.bell.synchronized {
      var now = getTimeMillis()
      // looked at also if the time is over already, as it is after each look at the sources if the
      // interval is short: an idle query would never see a stop
      var ends = StopAfterBatch.betweenBatches(session)
      while (!ends && now < target && !behind && !triggerRequested) {
        JobClock.bell.wait(math.min(JobClock.LookEveryMs, target - now))
        now = getTimeMillis()
        ends = StopAfterBatch.betweenBatches(session)
      }
      now
    }
  }

  private def triggerRequested: Boolean =
    RunningQuery.of(session).exists(query => JobClock.requested.remove(query.runId))

  private def behind: Boolean = RunningQuery.of(session).exists(_.isBehind)
}

object JobClock {
  /** Tests move processing time on with this setting instead of sleeping. */
  val OffsetKey = "spark.headgate.clock.offset.ms"
  // for a clock that is moved by hand: all else rings
  private val LookEveryMs = 50L
  private val bell = new Object
  private val requested = ConcurrentHashMap.newKeySet[UUID]()

  /** Lets the query's next trigger begin now. */
  def triggerNow(queryRunId: String): Unit = {
    requested.add(UUID.fromString(queryRunId))
    ring()
  }

  /** Queries that wait for their next trigger look at once whether they need. */
  private[batch] def ring(): Unit = bell.synchronized(bell.notifyAll())

  def offset(session: Session): Long = session.conf.getOption(OffsetKey).fold(0L)(_.toLong)
}
