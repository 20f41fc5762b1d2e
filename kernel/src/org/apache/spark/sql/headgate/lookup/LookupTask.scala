package org.apache.spark.sql.headgate.lookup

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeRowJoiner
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.headgate._
import org.apache.spark.sql.types._

case class LookupCounters(in: StepCounter, out: StepCounter, missing: StepCounter,
    inserted: StepCounter, removed: StepCounter, waitingAdded: StepCounter,
    waitingRemoved: StepCounter)

/** All that a task of a lookup needs from the driver. */
case class LookupPlan(leftKeys: Seq[Attribute], rightKeys: Seq[Attribute], value: Attribute,
    deleted: Option[Attribute], missing: Missing, rider: Option[Attribute], left: Seq[Attribute], right: Seq[Attribute],
    waiting: Seq[Attribute], timeMs: Long, batchId: Long, cacheBytes: Long,
    counters: LookupCounters, deadlines: Option[LeastDeadline], failEvery: Int)

/**
 * One partition of one batch, in the order that the semantics ask for: all table rows, then the
 * waiting rows whose table row has come, then those whose time is up, then the stream's rows.
 */
final class LookupTask(plan: LookupPlan, opened: OpenStores, stream: Iterator[InternalRow],
    tableRows: Iterator[InternalRow], finished: LookupTask => Unit) extends StepTask {

  private val store: StateStore = opened.stores.head
  private val cacheId = opened.ids.head
  private val cache = if (plan.cacheBytes > 0)
    RowCaches.take(cacheId, opened.version, opened.loadedIds.map(_.head), plan.cacheBytes) else null
  private val counters = plan.counters
  private val valueSchema = StructType(StructField("row", plan.value.dataType) :: Nil)
  private val leftSchema = StructType(plan.left.map(a => StructField(a.name, a.dataType, a.nullable)))
  private val joiner = GenerateUnsafeRowJoiner.create(leftSchema, valueSchema)
  private val none = UnsafeProjection.create(valueSchema).apply(InternalRow(null)).copy()
  private val keyOf = UnsafeProjection.create(plan.leftKeys, plan.left)
  private val riderAt = plan.rider.fold(-1)(LookupTask.indexOf(_, plan.left))
  private val waitMs = plan.missing match { case Missing.Wait(ms) => ms; case _ => -1L }
  private val drops = plan.missing == Missing.Drop
  private val goesOn = plan.missing == Missing.Null
  private val waiting = if (waitMs >= 0) new WaitingRows(plan, opened, joiner) else null

  var cacheHits = 0L
  def cacheBytes: Long = if (cache == null) 0L else cache.bytes

  applyTableRows()
  private val released: Iterator[InternalRow] =
    if (waiting == null) Iterator.empty
    else waiting.release(key => find(key)).map { r => counters.out.inc(); r } ++
      waiting.expire().map { r => counters.missing.inc(); joiner.join(r, none) }

  private def applyTableRows(): Unit = {
    val key = UnsafeProjection.create(plan.rightKeys, plan.right)
    val value = UnsafeProjection.create(Seq(plan.value), plan.right)
    val deletedAt = plan.deleted.fold(-1)(LookupTask.indexOf(_, plan.right))
    while (tableRows.hasNext) {
      val row = tableRows.next()
      counters.in.inc()
      val k = key(row)
      if (!k.anyNull()) { // a null key never matches, so it is never stored
        val existed = find(k) != null
        if (deletedAt >= 0 && !row.isNullAt(deletedAt) && row.getBoolean(deletedAt)) {
          if (existed) {
            store.remove(k); rowsRemoved += 1; counters.removed.inc()
            if (cache != null) cache.put(k, RowCache.Absent)
          }
        } else {
          val v = value(row)
          store.put(k, v); rowsStored += 1
          if (!existed) counters.inserted.inc()
          if (cache != null) cache.put(k, v)
          if (waiting != null) waiting.tableRowCame(k)
        }
      }
    }
  }

  /** The table row of a key, or null; good until the next call. */
  private def find(key: UnsafeRow): UnsafeRow =
    if (cache == null) store.get(key)
    else {
      val cached = cache.get(key)
      if (cached != null) { cacheHits += 1; if (cached eq RowCache.Absent) null else cached }
      else {
        val read = store.get(key)
        cache.put(key, if (read == null) RowCache.Absent else read)
        read
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
    if (cache != null) {
      val committed =
        if (opened.conf.enableStateStoreCheckpointIds) store.getStateStoreCheckpointInfo().stateStoreCkptId
        else None
      RowCaches.giveBackOnSuccess(cacheId, opened.version + 1, committed, cache)
    }
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}

object LookupTask {
  /** A column that the optimizer renamed behind our back must not pass for one that is not there. */
  private def indexOf(column: Attribute, in: Seq[Attribute]): Int = {
    val at = in.indexWhere(_.semanticEquals(column))
    require(at >= 0, s"no column $column in ${in.mkString(", ")}")
    at
  }
}
