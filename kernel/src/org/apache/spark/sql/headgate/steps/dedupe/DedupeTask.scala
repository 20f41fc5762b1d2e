package org.apache.spark.sql.headgate.steps.dedupe

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores}
import org.apache.spark.sql.headgate.steps.core.{KeySort, LeastTimes, SortLimits, StepTask, TimeStore}
import org.apache.spark.sql.headgate.store.CachedStore
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.Saturating
import org.apache.spark.sql.types._

case class DedupeCounters(in: StepCounter, out: StepCounter, duplicates: StepCounter, inserted: StepCounter,
    removed: StepCounter)

/**
 * All that a task needs from the driver; times in microseconds.
 *
 * @param now   this batch's watermark, or its time where keys are forgotten by the clock
 * @param first whether the query was started with this batch: before, keys may have been known for ever
 */
case class DedupePlan(keys: Seq[Attribute], order: Seq[Attribute], time: Option[Attribute], within: Long,
    columns: Seq[Attribute], now: Long, first: Boolean, counters: DedupeCounters, cacheBytes: Long,
    sort: SortLimits, batchId: Long, failEvery: Int)

/** One partition of one batch: rows by key and place get their marks; then keys are forgotten. */
final class DedupeTask(plan: DedupePlan, opened: OpenStores, input: Iterator[InternalRow],
    finished: DedupeTask => Unit) extends StepTask {
  import plan.{counters, now, within}

  private val known = new CachedStore(opened, plan.cacheBytes)
  private val expiry = new TimeStore(opened.stores(1), plan.keys.map(_.dataType), LeastTimes.of(opened, 1))
  private val sorted = new KeySort(plan.columns, plan.keys, plan.order, input, plan.sort)
  private val timeAt = plan.time.fold(-1)(t => plan.columns.indexWhere(_.exprId == t.exprId))
  private val markSchema = StructType(StructField("mark", BooleanType, nullable = false) :: Nil)
  private val joiner = GeneratedCode.joiner(
    StructType(plan.columns.map(a => StructField(a.name, a.dataType, a.nullable))), markSchema)
  private val marks = Array(false, true).map(m => GeneratedCode.projection(markSchema).apply(InternalRow(m)).copy())
  private val timeRow = GeneratedCode.projection(Array[DataType](TimestampType))
  private val one = new GenericInternalRow(1)
  if (plan.first) arrangeExpiry()

  /** Keys that were known for ever are forgotten from now on, or the other way round. */
  private def arrangeExpiry(): Unit = {
    val store = opened.stores(1)
    val scan = store.iterator()
    val any = try scan.hasNext finally scan.close()
    if (within == 0 && any) {
      val all = store.iterator()
      try all.foreach(p => store.remove(p.key)) finally all.close()
    } else if (within > 0 && !any) {
      val all = opened.stores(0).iterator()
      try all.foreach(p => expiry.put(p.key, Saturating.plus(p.value.getLong(0), within), 0)) finally all.close()
    }
  }

  // a row without event time is taken for one of the watermark's
  private def timeOf(row: UnsafeRow): Long =
    if (timeAt < 0 || row.isNullAt(timeAt)) now else row.getLong(timeAt)

  private def isDuplicate(key: UnsafeRow, time: Long): Boolean = {
    val found = known.get(key)
    if (found == null) { learn(key, time); counters.inserted.inc(); false }
    else {
      val before = found.getLong(0)
      if (within == 0 || time < Saturating.plus(before, within)) true
      else {
        expiry.remove(key, Saturating.plus(before, within), 0)
        learn(key, time)
        false
      }
    }
  }

  private def learn(key: UnsafeRow, time: Long): Unit = {
    one.setLong(0, time)
    known.put(key, timeRow(one))
    rowsStored += 1
    if (within > 0) expiry.put(key, Saturating.plus(time, within), 0)
  }

  override protected def work(): Unit =
    if (sorted.hasNext) {
      val row = sorted.next()
      counters.in.inc()
      rowsOut += 1
      val duplicate = isDuplicate(sorted.key, timeOf(row))
      if (duplicate) counters.duplicates.inc() else counters.out.inc()
      current = joiner.join(row, marks(if (duplicate) 1 else 0))
    } else end()

  private def forget(): Unit = if (within > 0 && now != Long.MinValue) expiry.due(now) { (key, _, _) =>
    val found = known.get(key)
    if (found != null) {
      val until = Saturating.plus(found.getLong(0), within)
      if (until > now) expiry.put(key, until, 0) // the job says another `within` since
      else { known.remove(key); rowsRemoved += 1; counters.removed.inc() }
    }
    false
  }

  private def end(): Unit = {
    ended = true
    forget()
    expiry.first
    finished(this)
    LeastTimes.keepOnSuccess(opened, 1, expiry.least)
    known.committed()
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}
