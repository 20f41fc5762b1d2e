package org.apache.spark.sql.headgate.steps.aggregate

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores, StateStore}
import org.apache.spark.sql.headgate.steps.core.{LeastTimes, StepTask, TimeStore}
import org.apache.spark.sql.headgate.store.{CachedStore, StoreSpec}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{LeastDeadline, Saturating}
import org.apache.spark.sql.types._

case class AggregateCounters(out: StepCounter, inserted: StepCounter, removed: StepCounter)

/**
 * The times of a batch, in microseconds.
 *
 * @param before, watermark of the batch before and of this one; the least Long if there is none
 * @param clockBefore, clock processing time of the batch before, if there was one, and of this one
 * @param drained  whether event time ends
 * @param due, clockDue get the times at which there is something to do
 */
case class StepTimes(before: Long, watermark: Long, clockBefore: Option[Long], clock: Long, drained: Boolean,
    due: LeastDeadline, clockDue: LeastDeadline)

/**
 * All that a task needs from the driver.
 *
 * @param first whether the query was started with this batch: before, keys may have been kept for ever
 */
case class AggregatePlan(spec: AggregateSpec, keys: Seq[Attribute], input: Seq[Attribute],
    functions: Seq[AggregateExpression], results: Seq[NamedExpression], having: Option[Expression],
    output: Seq[Attribute], stores: Seq[StoreSpec], times: StepTimes, counters: AggregateCounters, cacheBytes: Long,
    first: Boolean, batchId: Long, failEvery: Int)

/**
 * One partition of one batch: new rows are merged into what is kept of their keys, and the results that
 * changed leave, at once or when time has passed; then the keys whose time is up are forgotten. So there is
 * at most one row for each key.
 */
final class AggregateTask(plan: AggregatePlan, opened: OpenStores, input: Iterator[InternalRow],
    finished: AggregateTask => Unit) extends StepTask {
  import AggregateStores.{Noted, Shown, Unknown}
  import plan.{counters, spec, times}

  private def numberOf(name: String): Int = plan.stores.indexWhere(_.name == name)
  private val kept = new CachedStore(opened, plan.cacheBytes)
  private val dueAt = numberOf(AggregateStores.Due)
  private val expiry =
    if (dueAt < 0) null
    else new TimeStore(opened.stores(dueAt), plan.keys.map(_.dataType), LeastTimes.of(opened, dueAt))
  private val changed: StateStore = numberOf(AggregateStores.Changed) match {
    case -1 => null
    case i => opened.stores(i)
  }
  private val rows = new AggregateRows(plan)
  private val nothing = GeneratedCode.projection(Array[DataType](BooleanType)).apply(InternalRow(null)).copy()
  /** The time by which keys are forgotten. */
  private val now = if (spec.byEventTime) times.watermark else times.clock
  private val ticked = times.drained ||
    spec.clock > 0 && times.clockBefore.exists(_ / spec.clock < times.clock / spec.clock) ||
    spec.every > 0 && times.watermark != Long.MinValue &&
      Math.floorDiv(times.watermark, spec.every) * spec.every > times.before
  if (plan.first) arrange()

  /** Keys that were kept for ever are forgotten from now on. */
  private def arrange(): Unit = if (expiry != null && isEmpty(opened.stores(dueAt))) {
    val until = if (now == Long.MinValue) Unknown else after(now)
    val all = opened.stores.head.iterator()
    try all.foreach { pair =>
      val row = pair.value.copy()
      rows.setExpires(row, until)
      kept.put(pair.key, row)
      look(pair.key, until)
    } finally all.close()
  }

  /** Until when a key is kept that was touched at a time; never the end of time, which stands for unknown. */
  private def after(time: Long): Long = math.min(Saturating.plus(time, spec.ttl), Unknown - 1)

  /** Until when a key is kept; what came before there was a watermark counts as of the first one's time. */
  private def expires(row: UnsafeRow): Long = {
    val until = rows.expires(row)
    if (until == Unknown && now != Long.MinValue) after(now) else until
  }

  /** Has a key looked at when its time is up, or as soon as there is a time. */
  private def look(key: UnsafeRow, until: Long): Unit =
    expiry.put(key, if (until == Unknown) Long.MinValue else until, 0)

  private def isEmpty(store: StateStore): Boolean = {
    val scan = store.iterator()
    try !scan.hasNext finally scan.close()
  }

  /** Merges a group of new rows; the update that it gives at once, or null. */
  private def take(group: InternalRow): InternalRow = {
    val key = rows.key(group)
    val in = rows.value(group)
    val old = kept.get(key)
    val flags = if (old == null) 0 else rows.flags(old)
    val isOver = expiry != null && old != null && expires(old) <= now
    // what was noted, when the job still had an `emit`, was not told
    val told = if (changed == null && flags == Shown) rows.result(key, old).copy() else null
    val until = untilOf(key, in, if (expiry == null || old == null || isOver) Unknown else expires(old))
    if (expiry != null && until <= now) forgotten(key, old, flags)
    else {
      if (old == null) {
        counters.inserted.inc()
        if (expiry != null) look(key, until)
      }
      val merged = if (old == null || isOver) in else rows.merge(old, in)
      rows.setExpires(merged, until)
      if (changed == null) tell(key, merged, flags, told)
      else {
        changed.put(key, nothing)
        put(key, merged, flags | Noted)
        null
      }
    }
  }

  /** Until when a key is kept that got new rows. */
  private def untilOf(key: UnsafeRow, in: UnsafeRow, before: Long): Long =
    if (spec.ttl == 0) Unknown
    else if (!spec.byEventTime) after(now)
    else {
      // a row without event time is taken for one of the watermark's
      val touched = rows.time(key, in).orElse(Option.when(now != Long.MinValue)(now))
      touched.map(after).fold(before)(until => if (before == Unknown) until else math.max(before, until))
    }

  /** Removes a key, if it is kept; the deletion of its row, or null if it has none. */
  private def forgotten(key: UnsafeRow, old: UnsafeRow, flags: Int): InternalRow = {
    if (old != null) {
      kept.remove(key)
      if ((flags & Noted) != 0 && changed != null) changed.remove(key)
      rowsRemoved += 1
      counters.removed.inc()
    }
    if ((flags & Shown) != 0) rows.deletion(key) else null
  }

  /** Stores a key's row, and gives what is to be told of it, or null. */
  private def tell(key: UnsafeRow, row: UnsafeRow, flags: Int, told: UnsafeRow): InternalRow = {
    val result = rows.result(key, row)
    val (was, is) = ((flags & Shown) != 0, rows.isWanted(result))
    put(key, row, if (is) Shown else 0)
    if (is) { if (was && told != null && told == result) null else result }
    else if (was) rows.deletion(key)
    else null
  }

  private def put(key: UnsafeRow, row: UnsafeRow, flags: Int): Unit = {
    rows.setFlags(row, flags)
    kept.put(key, row)
    rowsStored += 1
  }

  /** What changed since it was emitted last. */
  private def toldLate(): Iterator[InternalRow] =
    if (changed == null || !ticked) Iterator.empty
    else {
      val scan = changed.iterator()
      Iterator.continually(if (scan.hasNext) scan.next().key.copy() else { scan.close(); null }).takeWhile(_ != null)
        .map { key =>
          changed.remove(key)
          val row = kept.get(key)
          if (row == null) null else { val own = row.copy(); tell(key, own, rows.flags(own), null) }
        }
    }

  private def forget(): Iterator[InternalRow] =
    if (expiry == null || now == Long.MinValue) Iterator.empty
    else expiry.take(now) { (key, _, _) =>
      val row = kept.get(key)
      if (row == null) Iterator.empty
      else if (expires(row) > now) {
        if (rows.expires(row) == Unknown) {
          val own = row.copy()
          rows.setExpires(own, expires(row))
          put(key, own, rows.flags(own))
        }
        look(key, expires(row))
        Iterator.empty
      }
      else Iterator.single(forgotten(key, row, rows.flags(row)))
    }

  // keys whose time is up are gone before they are emitted; each is made when the one before has ended
  private lazy val later: Iterator[InternalRow] = forget() ++ toldLate()

  override protected def work(): Unit = {
    if (input.hasNext) current = take(input.next())
    else if (later.hasNext) current = later.next()
    else end()
    if (current != null) { counters.out.inc(); rowsOut += 1 }
  }

  /** Tells the driver when there is something to do next. */
  private def tellNext(): Unit = {
    if (expiry != null) expiry.first.foreach { time =>
      (if (spec.byEventTime) times.due else times.clockDue).add(time)
    }
    if (changed != null && !ticked && !isEmpty(changed)) {
      if (spec.every > 0) {
        val from = if (times.watermark == Long.MinValue) 0L else times.watermark
        times.due.add(Saturating.times(Math.floorDiv(from, spec.every) + 1, spec.every))
      }
      if (spec.clock > 0) times.clockDue.add((times.clock / spec.clock + 1) * spec.clock)
    }
  }

  private def end(): Unit = {
    ended = true
    tellNext()
    finished(this)
    if (expiry != null) LeastTimes.keepOnSuccess(opened, dueAt, expiry.least)
    kept.committed()
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}
