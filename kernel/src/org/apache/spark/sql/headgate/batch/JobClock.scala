package org.apache.spark.sql.headgate.batch

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.headgate.spark.{RunningQuery, Session, Sessions}
import org.apache.spark.util.{Clock, SystemClock}

/**
 * The clock of a job's query: processing time, and how long a trigger waits.
 *
 * Spark's trigger waits for the next multiple of its interval (ProcessingTimeExecutor) even when a
 * source had more than one batch may take, so a job that is behind would stay behind. Here it goes on
 * at once while any source has records left; a stop or a requested checkpoint does not wait either.
 *
 * Nor do rows that come after a pause: the interval is the least time between the starts of two batches
 * that take rows. When it is over, the clock asks the sources that can tell ([[TellsOfRecords]]), and
 * lets the trigger begin when one has records. So no batch begins that would not at the next multiple.
 *
 * @param everyMs the interval
 */
final class JobClock(session: Session, everyMs: Long) extends Clock {
  private val system = new SystemClock
  private val offset = JobClock.offset(session)
  private val lookMs = JobClock.lookMs(session, everyMs)
  /** When the trigger began that has just ended; as it was planned, so that no delay adds up. */
  private var begun: Option[Long] = None
  private var lastBatchWithRows: Option[Long] = None
  private var rowsFrom = Long.MinValue
  private var woken = false

  override def getTimeMillis(): Long = system.getTimeMillis() + offset
  override def nanoTime(): Long = system.nanoTime()

  override def waitTillTime(next: Long): Long = {
    val query = RunningQuery.of(session)
    val took = tookRows(query)
    if (took) rowsFrom = begun.fold(next)(_ + everyMs)
    val due = if (lookMs.isDefined) math.max(next, rowsFrom) else next
    // a source may have records that it does not give yet: a trigger that found nothing is not repeated
    val watched = if (lookMs.isDefined && (took || !woken)) query.toSeq.flatMap(_.offsetsNow).collect {
      case (source: TellsOfRecords, seen) => (source, seen)
    } else Nil
    var now = getTimeMillis()
    val late = now > due
    woken = false
    // looked at also if the time is over already, as it is after each look at the sources if the
    // interval is short: an idle query would never see a stop
    var called = isCalled(0) || query.exists(_.isBehind)
    while (!called && !woken && now < due) {
      val looks = watched.nonEmpty && now >= rowsFrom
      woken = looks && watched.exists { case (source, seen) => source.hasRecordsBehind(seen) }
      val until = if (looks) now + lookMs.get else if (watched.nonEmpty) rowsFrom else due
      if (!woken) called = isCalled(Seq(until - now, due - now, JobClock.LongestWaitMs).min)
      now = getTimeMillis()
    }
    begun = Some(if (called || woken || late) now else due)
    now
  }

  /** Whether the trigger that has just ended ran a batch that took rows. */
  private def tookRows(query: Option[RunningQuery]): Boolean = {
    val batch = query.flatMap(_.lastBatchWithRows)
    val took = batch.isDefined && batch != lastBatchWithRows
    if (took) lastBatchWithRows = batch
    took
  }

  /** Whether the trigger is to begin whatever the time is, now or until `ms` have passed. */
  private def isCalled(ms: Long): Boolean = {
    def wanted = StopAfterBatch.betweenBatches(session) || triggerRequested
    // whoever asks for something rings, and must not do so between a look and the wait
    JobClock.bell.synchronized(wanted || ms > 0 && {
      JobClock.bell.wait(ms)
      wanted
    })
  }

  private def triggerRequested: Boolean =
    RunningQuery.of(session).exists(query => JobClock.requested.remove(query.runId))
}

object JobClock {
  /** Tests move processing time on with this setting instead of sleeping. */
  val OffsetKey = "spark.headgate.clock.offset.ms"
  /** How often a job whose interval is over asks its sources; 0: not before the next multiple. */
  val IdleKey = "spark.headgate.idle.look.ms"
  private val ShortestLookMs = 20L
  private val LongestLookMs = 100L
  // who waits longer does so for large batches, or for a time of day
  private val LongestIntervalMs = 60000L
  // for a machine's clock that is set: all else rings
  private val LongestWaitMs = 1000L
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

  /** None: it does not look; with an interval as short as a look, Spark's triggers do. */
  private def lookMs(session: Session, everyMs: Long): Option[Long] = {
    val tenth = math.min(math.max(everyMs / 10, ShortestLookMs), LongestLookMs)
    val usual = if (everyMs <= LongestIntervalMs) tenth else 0L
    Some(Sessions.setting(session, IdleKey).fold(usual)(_.toLong)).filter(ms => ms > 0 && ms < everyMs)
  }
}
