package org.apache.spark.sql.headgate.steps.window

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores, StateStore, StoreShape, StoredPair, StoredPairs}
import org.apache.spark.sql.headgate.steps.core.StepTask
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.Saturating
import org.apache.spark.sql.types._

/**
 * One partition of one batch: new rows are merged into their windows, with early rows and, where a
 * window was due before, its on-time row or an update; then come the early rows for which time has
 * passed, then the windows that end by now, and those whose time for late rows is up are removed.
 *
 * How new rows find their windows is for the kinds of windows to say.
 */
abstract class WindowTask(plan: WindowPlan, opened: OpenStores, finished: WindowTask => Unit)
  extends StepTask {
  import plan.{before, now, spec}

  protected def storeOf(name: String): StateStore =
    plan.stores.indexWhere(_.name == name) match {
      case -1 => null
      case i => opened.stores(i)
    }
  protected val store: StateStore = storeOf(WindowStores.Windows)
  private val changed = storeOf(WindowStores.Changed)
  protected val counters: WindowCounters = plan.counters
  protected val buffers = new Buffers(plan.functions, spec.session)
  protected val rows = new WindowRows(plan, buffers)
  protected val keys: Int = plan.keys.length
  private val keySchema = plan.stores.head.keySchema
  private val closesAll = now == Long.MaxValue
  private val removeTo = lessLateness(now)
  /** The last multiple of `every` that the watermark came to in this batch; the least time if none. */
  private val reached: Long =
    if (spec.every == 0 || closesAll || now == Long.MinValue) Long.MinValue
    else Some(Math.floorDiv(now, spec.every) * spec.every).filter(_ > before).getOrElse(Long.MinValue)
  private val ticked = spec.clock > 0 && plan.clock.before.exists(_ / clockMs < plan.clock.now / clockMs)
  private def clockMs: Long = math.max(1L, spec.clock / 1000L)
  private val nothing = GeneratedCode.projection(StructType(StructField("none", BooleanType) :: Nil))
    .apply(InternalRow(null)).copy()
  private val leastKey = StoreShape.leastRow(StructType(keySchema.init))
  private val boundary = GeneratedCode.projection(keySchema)

  protected def timeOf(key: UnsafeRow): Long = key.getLong(keys)

  /** Whether time has passed for an early row: a multiple before its start does not count for a window. */
  private def timeHasPassed(key: UnsafeRow, window: UnsafeRow): Boolean =
    ticked || reached > (if (spec.session) buffers.start(window) else timeOf(key) - spec.size)

  /** Windows that end after one time and by another, in order; nothing outside is read. */
  protected def between(after: Long, by: Long,
      in: StateStore = store): StoredPairs = {
    def at(time: Long) = {
      val row = new GenericInternalRow(keys + 1)
      (0 until keys).foreach(i => row.update(i, leastKey.get(i, keySchema(i).dataType)))
      row.setLong(keys, time)
      Some(boundary(row).copy())
    }
    in.rangeScan(if (after == Long.MinValue) None else at(after + 1),
      if (by == Long.MaxValue) None else at(by + 1))
  }

  /** Counts rows that came; a row of overlapping windows is in several groups, and counted before. */
  protected def came(count: Long): Unit = if (spec.slide == spec.size) counters.in.add(count)

  /** Whether there is input that was not merged, or rows that it gave. */
  protected def inputLeft: Boolean
  /** Merges some of it; the row that it gives at once, or null. */
  protected def takeInput(): InternalRow
  /** What is kept of a window elsewhere goes, too. */
  protected def forget(key: UnsafeRow): Unit = ()

  /** What a window that got new rows says at once, or null. */
  protected var said: InternalRow = null

  /**
   * Decides what the window says, which is in `said` then.
   *
   * @param noted whether it is among the changed windows already
   * @return the window's row after that
   */
  protected def speak(key: UnsafeRow, window: UnsafeRow, noted: Boolean): UnsafeRow = {
    val end = timeOf(key)
    said = null
    if (end <= before) {
      // it was due before this batch: what it has now goes out at once
      val by = if (buffers.has(window, WindowStores.OnTime)) rows.Late else rows.OnTime
      said = rows.result(key, window, by)
      buffers.fired(window, WindowStores.OnTime, spec.discarding)
    } else {
      // a condition fires also in a window that closes in this batch: an alert must not be lost
      val flags = rows.conditionsMet(key, window)
      val open = end > now
      if (flags != 0 || open && (timeHasPassed(key, window) || countReached(window))) {
        said = rows.result(key, window, rows.Early)
        buffers.fired(window, if (flags > 0) flags else 0, spec.discarding)
      } else {
        if (open && changed != null && !noted) changed.put(key, nothing)
        window
      }
    }
  }

  private def countReached(window: UnsafeRow): Boolean =
    spec.afterCount > 0 && buffers.since(window) >= spec.afterCount

  protected def put(key: UnsafeRow, window: UnsafeRow): Unit = {
    store.put(key, window)
    rowsStored += 1
  }

  /** The early rows that are due because time has passed. */
  private def early(): Iterator[InternalRow] =
    if (changed == null || !closesAll && !ticked && reached == Long.MinValue) Iterator.empty
    else closing(between(Long.MinValue, if (closesAll || ticked || spec.session) Long.MaxValue
      else Saturating.plus(reached, spec.size - 1), changed)).map { pair =>
      val key = pair.key.copy()
      val found = if (timeOf(key) > now) store.get(key) else null
      val silent = found == null || buffers.since(found) == 0L
      if (!silent && !timeHasPassed(key, found)) null // a session that begins later: it stays noted
      else if (silent) { changed.remove(key); null }
      else {
        changed.remove(key)
        val window = found.copy()
        val out = rows.result(key, window, rows.Early)
        put(key, buffers.fired(window, 0, spec.discarding))
        out
      }
    }

  /** The on-time rows of the windows that end between the watermark before and the one now. */
  private def onTime(): Iterator[InternalRow] =
    if (now <= before) Iterator.empty
    else closing(between(before, now)).map { pair =>
      val window = pair.value
      if (buffers.has(window, WindowStores.OnTime)) null
      else {
        val out = rows.result(pair.key, window, rows.OnTime)
        if (timeOf(pair.key) <= removeTo) remove(pair.key)
        else put(pair.key, buffers.fired(window.copy(), WindowStores.OnTime, spec.discarding))
        out
      }
    }

  private def remove(key: UnsafeRow): Unit = {
    forget(key)
    store.remove(key)
    rowsRemoved += 1
    counters.removed.inc()
  }

  /** What was closed in batches before is gone, and its traces in the store are not walked over. */
  private def removeClosed(): Unit =
    if (now != Long.MinValue && (plan.first || (spec.lateness > 0 && now > before)))
      closing(between(if (plan.first) Long.MinValue else lessLateness(before), removeTo))
        .foreach(pair => remove(pair.key))

  private def lessLateness(time: Long): Long =
    if (time == Long.MinValue || time == Long.MaxValue) time else Saturating.minus(time, spec.lateness)

  /** Tells the driver when there is something to do next. */
  private def tellNext(): Unit = if (!closesAll) {
    def first(it: StoredPairs): Option[Long] =
      try if (it.hasNext) Some(timeOf(it.next().key)) else None finally it.close()
    first(between(now, Long.MaxValue)).foreach { end =>
      if (spec.processing) plan.clock.due.add(Math.floorDiv(end, 1000L) + (if (spec.session) 1L else 0L))
      else plan.due.add(end)
    }
    if (spec.lateness > 0) first(between(removeTo, now)).foreach(end => plan.due.add(Saturating.plus(end, spec.lateness)))
    if (changed != null) first(changed.iterator()).foreach { end =>
      if (spec.every > 0) {
        val from = math.max(if (now == Long.MinValue) 0L else now, if (spec.session) 0L else end - spec.size)
        plan.due.add(Saturating.times(Math.floorDiv(from, spec.every) + 1, spec.every))
      }
      if (spec.clock > 0) plan.clock.due.add((plan.clock.now / clockMs + 1) * clockMs)
    }
  }

  private def closing(it: StoredPairs): Iterator[StoredPair] =
    new Iterator[StoredPair] {
      override def hasNext: Boolean = it.hasNext || { it.close(); false }
      override def next(): StoredPair = it.next()
    }

  private val ranked = if (plan.shown.isEmpty) null else new RankedRows(plan)
  private var ranks: Iterator[InternalRow] = Iterator.empty
  private var later: Iterator[InternalRow] = null
  private var lateLeft = 0L

  override protected def work(): Unit =
    if (lateLeft > 0) { lateLeft -= 1; current = rows.sameLateRow }
    else if (ranks.hasNext) give(ranks.next())
    else if (later == null) {
      if (inputLeft) tell(takeInput())
      else later = early() ++ onTime() // the second is made when the first has ended
    } else if (later.hasNext) tell(later.next())
    else end()

  private def tell(row: InternalRow): Unit =
    if (row != null && ranked != null) ranks = ranked.of(row) else if (row != null) give(row)

  private def give(row: InternalRow): Unit = { current = row; counters.out.inc(); rowsOut += 1 }

  /** Lets equal rows that no window takes leave by the side. */
  protected def sendLate(group: InternalRow): Unit = {
    val count = rows.count(group)
    came(count); counters.late.add(count)
    if (plan.lateRow.isDefined) { rows.lateRow(group); lateLeft = count; rowsOut += count }
  }

  private def end(): Unit = {
    ended = true
    removeClosed()
    tellNext()
    finished(this)
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}

/**
 * Tumbling and sliding windows: a group of new rows says itself which window it is for.
 *
 * Most windows are new when time goes forward, and a read that finds nothing costs as much as one
 * that does. Of an end with many keys it is found out once whether any was there before the batch.
 */
final class FixedWindowTask(plan: WindowPlan, opened: OpenStores, input: Iterator[InternalRow],
    finished: WindowTask => Unit) extends WindowTask(plan, opened, finished) {
  /** The windows with one end: how many this batch has put, as long as none was there before. */
  private final class Ending { var put = 0; var allNew = false; var someOld = false }
  private val endings = new mutable.LongMap[Ending]
  private var ending: Ending = null
  private var endingAt = Long.MinValue

  override protected def inputLeft: Boolean = input.hasNext

  override protected def takeInput(): InternalRow = {
    val group = input.next()
    if (rows.isLate(group)) { sendLate(group); null }
    else {
      came(rows.count(group))
      val key = rows.key(group)
      val old = stored(key)
      val noted = old != null && buffers.since(old) > 0L
      if (old == null) counters.inserted.inc()
      val in = rows.value(group)
      put(key, speak(key, if (old == null) in else buffers.merge(old, in), noted))
      said
    }
  }

  private def stored(key: UnsafeRow): UnsafeRow = {
    val end = timeOf(key)
    if (ending == null || end != endingAt) {
      ending = endings.getOrElseUpdate(end, new Ending)
      endingAt = end
    }
    // after some keys that were not there a scan is worth it: it sees those, and others if there are
    if (ending.put == FixedWindowTask.Tries && !ending.someOld && !ending.allNew) {
      val scan = between(end - 1, end)
      try {
        var found = 0
        while (found <= ending.put && scan.hasNext) { scan.next(); found += 1 }
        if (found == ending.put) ending.allNew = true else ending.someOld = true
      } finally scan.close()
    }
    if (ending.allNew) null
    else {
      val found = store.get(key)
      if (found != null) ending.someOld = true else ending.put += 1
      found
    }
  }
}

object FixedWindowTask {
  private val Tries = 16
}
