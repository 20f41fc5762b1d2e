package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores}
import org.apache.spark.sql.headgate.steps.core.{NumberSort, StepTask}
import org.apache.spark.sql.headgate.store.CachedStore
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{LeastDeadline, WaitingTimes}
import org.apache.spark.sql.types._

case class LookupCounters(in: StepCounter, out: StepCounter, missing: StepCounter,
    inserted: StepCounter, removed: StepCounter, waitingAdded: StepCounter,
    waitingRemoved: StepCounter)

/**
 * All that a task of a lookup needs from the driver.
 *
 * @param held      the event time of rows, if those that wait hold the watermark
 * @param times     gets the least event time of those
 * @param watermark this batch's, in microseconds; a row behind it is late already and holds nothing
 * @param first     whether the query was started with this batch
 * @param ttl       when the table's rows are forgotten, if they are
 */
case class LookupPlan(leftKeys: Seq[Attribute], rightKeys: Seq[Attribute], value: Attribute,
    position: Option[Attribute], deleted: Option[Attribute], missing: Missing, rider: Option[Attribute], left: Seq[Attribute], right: Seq[Attribute],
    waiting: Seq[Attribute], timeMs: Long, batchId: Long, cacheBytes: Long,
    counters: LookupCounters, deadlines: Option[LeastDeadline], held: Option[Attribute],
    times: Option[WaitingTimes], watermark: Long, first: Boolean, ttl: Option[TableTtl],
    failEvery: Int)

/**
 * One partition of one batch, in the order that the semantics ask for: table rows that are over are
 * forgotten, all table rows of the batch, then the waiting rows whose table row has come, then those
 * whose time is up, then the stream's rows.
 *
 * @param counts whether table rows are counted here: one partition counts those that all have
 */
final class LookupTask(plan: LookupPlan, counts: Boolean, opened: OpenStores, stream: Iterator[InternalRow],
    tableRows: Iterator[InternalRow], finished: LookupTask => Unit) extends StepTask {

  private val rows = new CachedStore(opened, plan.cacheBytes)
  private val counters = plan.counters
  private val valueSchema = StructType(StructField("row", plan.value.dataType) :: Nil)
  private val leftSchema = StructType(plan.left.map(a => StructField(a.name, a.dataType, a.nullable)))
  private val joiner = GeneratedCode.joiner(leftSchema, valueSchema)
  private val none = GeneratedCode.projection(valueSchema).apply(InternalRow(null)).copy()
  private val keyOf = GeneratedCode.projection(plan.leftKeys, plan.left)
  private val riderAt = plan.rider.fold(-1)(LookupTask.indexOf(_, plan.left))
  private val waitMs = plan.missing match { case Missing.Wait(ms) => ms; case _ => -1L }
  private val drops = plan.missing == Missing.Drop
  private val goesOn = plan.missing == Missing.Null
  private val waiting = if (waitMs >= 0) new WaitingRows(plan, opened, joiner) else null
  private val forgetting = plan.ttl.fold[ForgetfulRows](null)(new ForgetfulRows(_, plan, opened, rows))

  override def sums: Seq[(String, Long)] =
    Seq("headgateCacheHits" -> rows.hits, "headgateCacheBytes" -> rows.bytes)

  if (forgetting != null) forgetting.forget(() => removed())
  applyTableRows()
  private val released: Iterator[InternalRow] =
    if (waiting == null) Iterator.empty
    else waiting.release(find).map { r => counters.out.inc(); r } ++
      waiting.expire().map { r => counters.missing.inc(); joiner.join(r, none) }

  /** The table's row of a key, or null; good until the next call. */
  private def find(key: UnsafeRow): UnsafeRow =
    if (forgetting == null) rows.get(key) else forgetting.get(key)

  private def removed(): Unit = {
    rowsRemoved += 1
    if (counts) counters.removed.inc()
  }

  private def applyTableRows(): Unit = {
    val key = GeneratedCode.projection(plan.rightKeys, plan.right)
    val value = GeneratedCode.projection(Seq(plan.value), plan.right)
    val deletedAt = plan.deleted.fold(-1)(LookupTask.indexOf(_, plan.right))
    // a shuffle delivers blocks in any order: versions of a table row are applied by source position
    val rowsInOrder = plan.position.fold(tableRows)(p =>
      NumberSort(plan.right, LookupTask.indexOf(p, plan.right), tableRows))
    while (rowsInOrder.hasNext) {
      val row = rowsInOrder.next()
      if (counts) counters.in.inc()
      val k = key(row)
      if (!k.anyNull()) { // a null key never matches, so it is never stored
        val existed = rows.get(k) != null
        val deleted = deletedAt >= 0 && !row.isNullAt(deletedAt) && row.getBoolean(deletedAt)
        if (deleted || forgetting != null && forgetting.isOver(row)) {
          if (existed) {
            if (forgetting == null) rows.remove(k) else forgetting.remove(k)
            removed()
          }
        } else {
          if (forgetting == null) rows.put(k, value(row)) else forgetting.put(k, value(row), row)
          rowsStored += 1
          if (!existed && counts) counters.inserted.inc()
          if (waiting != null) waiting.tableRowCame(k)
        }
      }
    }
  }

  /** The output row of a stream row, or null when there is none (now). */
  private def look(row: UnsafeRow): InternalRow =
    if (riderAt >= 0 && !row.isNullAt(riderAt)) joiner.join(row, none)
    else {
      counters.in.inc()
      val key = keyOf(row)
      val nullKey = key.anyNull()
      val value = if (nullKey) null else find(key)
      if (value != null) { counters.out.inc(); rowsOut += 1; joiner.join(row, value) }
      else if (waiting != null && !nullKey) { waiting.hold(key, row); null }
      else {
        counters.missing.inc()
        if (goesOn) counters.out.inc()
        if (drops) null else { rowsOut += 1; joiner.join(row, none) }
      }
    }

  override protected def work(): Unit =
    if (released.hasNext) { current = released.next(); rowsOut += 1 }
    else if (stream.hasNext) current = look(stream.next().asInstanceOf[UnsafeRow])
    else end()

  private def end(): Unit = {
    ended = true
    if (waiting != null) waiting.close()
    finished(this)
    rows.committed()
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}

object LookupTask {
  /** A column that the optimizer renamed behind our back must not pass for one that is not there. */
  private[lookup] def indexOf(column: Attribute, in: Seq[Attribute]): Int = {
    val at = in.indexWhere(_.semanticEquals(column))
    require(at >= 0, s"no column $column in ${in.mkString(", ")}")
    at
  }
}
