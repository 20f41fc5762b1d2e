package org.apache.spark.sql.headgate.window

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.headgate._
import org.apache.spark.sql.types._

case class WindowCounters(in: StepCounter, out: StepCounter, late: StepCounter,
    inserted: StepCounter, removed: StepCounter)

/** All that a task of a window step needs from the driver; times are in microseconds. */
case class WindowPlan(spec: Windowing, keys: Seq[Attribute], end: Attribute, lateBytes: Attribute,
    input: Seq[Attribute], functions: Seq[AggregateExpression], count: Int,
    results: Seq[NamedExpression], conditions: Seq[Expression], lateRow: Option[StructType],
    output: Seq[Attribute], keySchema: StructType, before: Long, now: Long, due: LeastDeadline,
    batchId: Long, counters: WindowCounters, failEvery: Int)

/**
 * One partition of one batch: new rows are merged into their windows, with early rows and, where a
 * window was due before, its on-time row or an update; then come the early rows for which time has
 * passed, then the windows that end by now, and those whose time for late rows is up are removed.
 */
final class WindowTask(plan: WindowPlan, opened: OpenStores, input: Iterator[InternalRow],
    finished: WindowTask => Unit) extends Iterator[InternalRow] {
  import plan.{before, now, spec}

  private val store = opened.stores.head
  private val changed = if (spec.every > 0) opened.stores(1) else null
  private val counters = plan.counters
  private val buffers = new Buffers(plan.functions)
  private val rows = new WindowRows(plan, buffers)
  private val keys = plan.keys.length
  private val ended = now == Long.MaxValue
  private val removeTo = if (ended || now == Long.MinValue) now else now - spec.lateness
  private val passed = spec.every > 0 && now != Long.MinValue &&
    (before == Long.MinValue || Math.floorDiv(now, spec.every) > Math.floorDiv(before, spec.every))
  private val nothing = UnsafeProjection.create(StructType(StructField("none", BooleanType) :: Nil))
    .apply(InternalRow(null)).copy()
  private val leastKey = RangeScanBoundaryUtils.defaultInternalRow(StructType(plan.keySchema.init))
  private val boundary = UnsafeProjection.create(plan.keySchema)

  var rowsOut = 0L; var rowsStored = 0L; var rowsRemoved = 0L

  private def timeOf(key: UnsafeRow): Long = key.getLong(keys)

  /** Windows that end after one time and by another, in order; nothing outside is read. */
  private def between(after: Long, by: Long): StateStoreIterator[UnsafeRowPair] = {
    def at(time: Long) = {
      val row = new GenericInternalRow(keys + 1)
      (0 until keys).foreach(i => row.update(i, leastKey.get(i, plan.keySchema(i).dataType)))
      row.setLong(keys, time)
      Some(boundary(row).copy())
    }
    store.rangeScan(if (after == Long.MinValue) None else at(after + 1),
      if (by == Long.MaxValue) None else at(by + 1))
  }

  /** The row that a group of new rows gives at once, or null. */
  private def merge(group: InternalRow): InternalRow = {
    val key = rows.key(group)
    val count = rows.count(group)
    counters.in.add(count)
    val old = store.get(key)
    val in = rows.value(group)
    var window = if (old == null) in else buffers.merge(old, in)
    if (old == null) counters.inserted.inc()
    val end = timeOf(key)
    var out: InternalRow = null
    if (end <= before) {
      // it was due before this batch: what it has now is told at once
      out = rows.result(key, window, if (buffers.has(window, WindowStores.OnTime)) rows.Late else rows.OnTime)
      window = buffers.fired(window, WindowStores.OnTime, spec.discarding)
    } else if (end > now) {
      val flags = rows.conditionsMet(key, window)
      if (passed || flags != 0 || (spec.afterCount > 0 && buffers.since(window) >= spec.afterCount)) {
        out = rows.result(key, window, rows.Early)
        window = buffers.fired(window, if (flags > 0) flags else 0, spec.discarding)
      } else if (changed != null && (old == null || buffers.since(old) == 0L)) changed.put(key, nothing)
    }
    store.put(key, window)
    rowsStored += 1
    out
  }

  /** The early rows that are due because time has passed. */
  private def early(): Iterator[InternalRow] =
    if (!passed) Iterator.empty
    else closing(changed.iterator()).map { pair =>
      val key = pair.key.copy()
      changed.remove(key)
      val found = if (timeOf(key) > now) store.get(key) else null
      if (found == null || buffers.since(found) == 0L) null
      else {
        val window = found.copy()
        val out = rows.result(key, window, rows.Early)
        store.put(key, buffers.fired(window, 0, spec.discarding))
        rowsStored += 1
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
        else {
          store.put(pair.key, buffers.fired(window.copy(), WindowStores.OnTime, spec.discarding))
          rowsStored += 1
        }
        out
      }
    }

  private def remove(key: UnsafeRow): Unit = {
    store.remove(key)
    rowsRemoved += 1
    counters.removed.inc()
  }

  private def removeClosed(): Unit =
    if (spec.lateness > 0 && now > before && removeTo != Long.MinValue)
      closing(between(Long.MinValue, removeTo)).foreach(pair => remove(pair.key))

  /** Tells the driver at which watermark there is something to do next. */
  private def tellNext(): Unit = if (!ended) {
    def first(it: StateStoreIterator[UnsafeRowPair]): Option[Long] =
      try if (it.hasNext) Some(timeOf(it.next().key)) else None finally it.close()
    first(between(now, Long.MaxValue)).foreach(plan.due.add(_))
    if (spec.lateness > 0) first(between(Long.MinValue, now)).foreach(end => plan.due.add(end + spec.lateness))
    if (changed != null && first(changed.iterator()).isDefined)
      plan.due.add(if (now == Long.MinValue) 0L else (Math.floorDiv(now, spec.every) + 1) * spec.every)
  }

  private def closing(it: StateStoreIterator[UnsafeRowPair]): Iterator[UnsafeRowPair] =
    new Iterator[UnsafeRowPair] {
      override def hasNext: Boolean = it.hasNext || { it.close(); false }
      override def next(): UnsafeRowPair = it.next()
    }

  private var later: Iterator[InternalRow] = null
  private var current: InternalRow = null
  private var lateLeft = 0L
  private var done = false

  override def hasNext: Boolean = {
    while (current == null && !done) {
      if (lateLeft > 0) { lateLeft -= 1; current = rows.sameLateRow }
      else if (later == null) {
        if (input.hasNext) take(input.next())
        else later = early() ++ onTime() // the second is made when the first has ended
      } else if (later.hasNext) { current = later.next(); told() }
      else end()
    }
    current != null
  }

  private def take(group: InternalRow): Unit =
    if (!rows.isLate(group)) { current = merge(group); told() }
    else {
      val count = rows.count(group)
      counters.in.add(count); counters.late.add(count)
      if (plan.lateRow.isDefined) { rows.lateRow(group); lateLeft = count; rowsOut += count }
    }

  private def told(): Unit = if (current != null) { counters.out.inc(); rowsOut += 1 }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val row = current
    current = null
    row
  }

  private def end(): Unit = {
    done = true
    removeClosed()
    tellNext()
    finished(this)
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}
