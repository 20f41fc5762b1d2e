/** Owns whether event time has ended. */
package org.apache.spark.sql.headgate.time

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.connector.read.streaming.{Offset, SparkDataStream}
import org.apache.spark.sql.headgate.spark.{RunningQuery, Session, Sessions}

/** A source without rows, whose offsets say whether event time has ended. */
trait EndsTime {
  def isDrained(offset: Offset): Boolean
}

/**
 * Whether event time has ended: with a batch before the one that runs, or with it.
 *
 * It stands in the source's offset and so in the offset log: a replayed batch closes the same
 * windows, and rows that come in a later start find all of them closed.
 */
case class Drained(before: Boolean, now: Boolean)

object Drained {
  private val Key = "spark.headgate.drain"
  /** Query runs in whose last batch no source moved but this one. */
  private val still = ConcurrentHashMap.newKeySet[UUID]()

  def of(session: Session): Drained = RunningQuery.of(session) match {
    case Some(q) => Drained(in(q.offsetsBefore), in(q.offsetsNow))
    case None => Drained(before = false, now = false)
  }

  /** Called on the query's thread while a batch ends. */
  def batchEnds(session: Session): Unit = RunningQuery.of(session).foreach { q =>
    val before = q.offsetsBefore
    val moved = q.offsetsNow.exists {
      case (_: EndsTime, _) => false
      case (source, end) => !before.get(source).contains(end)
    }
    if (moved) still.remove(q.runId) else still.add(q.runId)
  }

  private[headgate] def atTheEnd(session: Session): Boolean =
    RunningQuery.of(session).exists(q => still.contains(q.runId))

  def forget(runId: UUID): Unit = still.remove(runId)

  private def in(offsets: Map[SparkDataStream, Offset]): Boolean = offsets.exists {
    case (source: EndsTime, offset) => source.isDrained(offset)
    case _ => false
  }

  /** A query copies its session's settings when it is made, and has its sources made later. */
  def starting[T](session: Session, drain: Boolean)(start: => T): T = {
    session.conf.set(Key, drain.toString)
    try start finally session.conf.unset(Key)
  }

  private[headgate] def isWanted: Boolean = Sessions.active.conf.get(Key, "false").toBoolean
}
