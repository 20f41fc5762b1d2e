package org.apache.spark.sql.headgate.steps.window

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores, Session}
import org.apache.spark.sql.headgate.time.Saturating
import org.apache.spark.sql.types._

/**
 * Sessions: rows that are at most a gap apart are in one. A new row may begin one, lengthen one, or
 * join several; so all rows of a key come together, in order of time, and what was kept under the
 * end of an old session is kept under the new end.
 *
 * A session whose on-time row is out and that lengthens beyond the watermark is open again, and
 * gives the on-time row of the longer session when that ends.
 */
final class SessionTask(plan: WindowPlan, opened: OpenStores, input: Iterator[InternalRow],
    finished: WindowTask => Unit) extends WindowTask(plan, opened, finished) {
  import plan.{before, spec}

  private val byKey = storeOf(WindowStores.Sessions)
  private val groups = input.buffered
  private val ready = mutable.Queue.empty[InternalRow]
  private val tooLate = mutable.Queue.empty[InternalRow]
  private val keyTypes = plan.keys.map(_.dataType)
  private val fullKey = GeneratedCode.projection(keyTypes.zipWithIndex.map { case (t, i) =>
    BoundReference(i, t, nullable = true)
  } :+ BoundReference(keyTypes.length, LongType, nullable = false))
  private val startRow = GeneratedCode.projection(Array[DataType](LongType))
  private val time = new GenericInternalRow(1)
  private val joined = new JoinedRow

  /** @param kept the ends under which parts of it are in the state */
  private final class Session(val start: Long, val end: Long, val kept: List[Long], val fresh: UnsafeRow) {
    def touches(from: Long, to: Long): Boolean = start <= to && from <= end
    def isOpen: Boolean = Saturating.plus(end, spec.lateness) > before
  }

  private def keyAt(key: UnsafeRow, end: Long): UnsafeRow = {
    time.setLong(0, end)
    fullKey(joined(key, time))
  }

  override protected def forget(key: UnsafeRow): Unit = byKey.remove(key)
  override protected def inputLeft: Boolean = ready.nonEmpty || tooLate.nonEmpty || groups.hasNext

  override protected def takeInput(): InternalRow =
    if (ready.nonEmpty) ready.dequeue()
    else {
      if (tooLate.nonEmpty) sendLate(tooLate.dequeue()) else takeKey()
      null
    }

  private def takeKey(): Unit = {
    val key = rows.keyAlone(groups.head).copy()
    var sessions = keptOf(key)
    val doubtful = mutable.ArrayBuffer.empty[InternalRow]
    while (groups.hasNext && rows.keyAlone(groups.head) == key) {
      val group = groups.next()
      if (rows.isLate(group)) tooLate += group.copy()
      else if (rows.mayBeLate(group)) doubtful += group.copy()
      else sessions = added(sessions, group)
    }
    // they lie before the sessions that are open: from the nearest back
    doubtful.reverseIterator.foreach { group =>
      val end = rows.end(group)
      if (sessions.exists(s => s.isOpen && s.touches(end - spec.size, end))) sessions = added(sessions, group)
      else tooLate += group
    }
    sessions.foreach(s => if (s.fresh != null) keep(key, s))
  }

  private def keptOf(key: UnsafeRow): List[Session] = {
    val scan = byKey.prefixScan(key)
    try scan.map { p =>
      val end = timeOf(p.key)
      new Session(p.value.getLong(0), end, List(end), null)
    }.toList finally scan.close()
  }

  private def added(sessions: List[Session], group: InternalRow): List[Session] = {
    came(rows.count(group))
    val end = rows.end(group)
    val (together, apart) = sessions.partition(_.touches(end - spec.size, end))
    val fresh = together.map(_.fresh).filter(_ != null).foldLeft(rows.value(group).copy()) { (sum, other) =>
      buffers.merge(sum, other).copy()
    }
    new Session((end - spec.size :: together.map(_.start)).min, (end :: together.map(_.end)).max,
      together.flatMap(_.kept), fresh) :: apart
  }

  /** Brings together what the session had and what is new, and lets it speak. */
  private def keep(key: UnsafeRow, session: Session): Unit = {
    var window = session.fresh
    session.kept.foreach { end =>
      val at = keyAt(key, end)
      window = buffers.merge(store.get(at), window).copy()
      store.remove(at)
      byKey.remove(at)
    }
    counters.inserted.add(1L); counters.removed.add(session.kept.length.toLong)
    val fired = buffers.has(window, WindowStores.OnTime)
    buffers.place(window, session.start, onTime = fired && session.end <= before)
    val at = keyAt(key, session.end).copy()
    put(at, speak(at, window, noted = false))
    time.setLong(0, session.start)
    byKey.put(at, startRow(time))
    if (said != null) ready += said.copy()
  }
}
