package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores}
import org.apache.spark.sql.headgate.steps.core.{NumberSort, StepTask}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{LeastDeadline, Saturating, WaitingTimes}
import org.apache.spark.sql.types._

/**
 * All that a task of a lookup as of a time needs from the driver; times are in microseconds.
 *
 * @param mark      the table's own watermark: versions before it are not expected any more. The greatest
 *                  Long if the table is idle or event time has ended, the least while nothing is known
 * @param newest    the newest time that the table has shown
 * @param keep      how long behind the job's watermark versions are kept
 * @param watermark the job's
 * @param due       gets the least time of the rows that wait
 * @param dropped   counts table rows without a time
 */
case class AsOfPlan(leftKeys: Seq[Attribute], at: Attribute, rightKeys: Seq[Attribute], value: Attribute,
    position: Attribute, deleted: Attribute, rowTime: Attribute, missing: Missing, rider: Option[Attribute],
    left: Seq[Attribute], right: Seq[Attribute], waiting: Seq[Attribute], stores: Seq[StoreSpec], mark: Long,
    newest: Long, keep: Long, watermark: Long, held: Option[Attribute], times: Option[WaitingTimes],
    due: LeastDeadline, batchId: Long, cacheBytes: Long, counters: LookupCounters, dropped: StepCounter,
    failEvery: Int) {
  def horizon: Long = if (watermark == Long.MinValue) watermark else Saturating.minus(watermark, keep)
}

/**
 * One partition of one batch: all table rows of the batch are put at their places, then the rows leave that
 * have waited for the table to come so far, then the stream's rows come; at last versions are forgotten.
 */
final class AsOfTask(plan: AsOfPlan, opened: OpenStores, stream: Iterator[InternalRow],
    tableRows: Iterator[InternalRow], finished: AsOfTask => Unit) extends StepTask {
  private val versions = new Versions(opened, plan.stores, plan.keep, plan.cacheBytes)
  private val counters = plan.counters
  private val waiting = new UntilMark(plan, opened)
  private val valueSchema = StructType(StructField("row", plan.value.dataType) :: Nil)
  private val leftSchema = StructType(plan.left.map(a => StructField(a.name, a.dataType, a.nullable)))
  private val joiner = GeneratedCode.joiner(leftSchema, valueSchema)
  private val none = GeneratedCode.projection(valueSchema).apply(InternalRow(null)).copy()
  private val keyOf = GeneratedCode.projection(plan.leftKeys, plan.left)
  private val atOf = LookupTask.indexOf(plan.at, plan.left)
  private val riderAt = plan.rider.fold(-1)(LookupTask.indexOf(_, plan.left))

  override def sums: Seq[(String, Long)] =
    Seq("headgateCacheHits" -> versions.hits, "headgateCacheBytes" -> versions.bytes)

  applyTableRows()
  private val released = waiting.release()

  private def applyTableRows(): Unit = {
    val key = GeneratedCode.projection(plan.rightKeys, plan.right)
    val value = GeneratedCode.projection(Seq(plan.value), plan.right)
    val deletedAt = LookupTask.indexOf(plan.deleted, plan.right)
    val timeAt = LookupTask.indexOf(plan.rowTime, plan.right)
    // a shuffle delivers blocks in any order: of versions with the same time the last by position stays
    val inOrder = NumberSort(plan.right, LookupTask.indexOf(plan.position, plan.right), tableRows)
    while (inOrder.hasNext) {
      val row = inOrder.next()
      counters.in.inc()
      val k = key(row)
      val deleted = !row.isNullAt(deletedAt) && row.getBoolean(deletedAt)
      val timed = !row.isNullAt(timeAt)
      if (!timed && !deleted) plan.dropped.inc()
      else if (!k.anyNull()) { // a null key never matches, so it is never stored
        val time =
          if (timed) row.getLong(timeAt)
          // a record with nothing but its key: from the newest time on that is known
          else math.max(plan.newest, versions.newestTime(k).fold(Long.MinValue)(Saturating.plus(_, 1L)))
        val more = versions.put(k, if (deleted) none else value(row), time, plan.horizon)
        rowsStored += 1
        counters.inserted.add(more)
      }
    }
  }

  private def answer(row: UnsafeRow, key: UnsafeRow, time: Long): InternalRow = {
    val value = versions.find(key, time)
    if (value == null) lacks(row) else { counters.out.inc(); rowsOut += 1; joiner.join(row, value) }
  }

  private def lacks(row: UnsafeRow): InternalRow = {
    counters.missing.inc()
    if (plan.missing == Missing.Null) counters.out.inc()
    if (plan.missing == Missing.Drop) null else { rowsOut += 1; joiner.join(row, none) }
  }

  /** The output row of a stream row, or null when there is none (now). */
  private def look(row: UnsafeRow): InternalRow =
    if (riderAt >= 0 && !row.isNullAt(riderAt)) joiner.join(row, none)
    else {
      counters.in.inc()
      val key = keyOf(row)
      if (key.anyNull() || row.isNullAt(atOf)) lacks(row)
      else {
        val time = row.getLong(atOf)
        if (time < plan.mark || plan.mark == Long.MaxValue) answer(row, key, time)
        else { waiting.hold(key, row, time); null }
      }
    }

  override protected def work(): Unit =
    if (released.hasNext) {
      val row = released.next()
      current = answer(row, keyOf(row), row.getLong(atOf))
    } else if (stream.hasNext) current = look(stream.next().asInstanceOf[UnsafeRow])
    else end()

  private def end(): Unit = {
    ended = true
    versions.forget(plan.horizon) { () => rowsRemoved += 1; counters.removed.inc() }
    versions.beforeCommit()
    waiting.tellNext()
    finished(this)
    versions.committed()
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}
