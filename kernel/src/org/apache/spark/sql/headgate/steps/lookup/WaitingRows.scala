package org.apache.spark.sql.headgate.steps.lookup

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowJoiner
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores}
import org.apache.spark.sql.headgate.time.Saturating
import org.apache.spark.sql.types._

/**
 * Stream rows held until their table row comes or their time is up: by key in one store, by
 * deadline in another, so that neither a release nor a time-out ever scans what is not due. Where
 * they hold the watermark they are by event time in a third, whose first row says how far it may go.
 */
final class WaitingRows(plan: LookupPlan, opened: OpenStores, joiner: UnsafeRowJoiner) {
  private val byKey = opened.stores(1)
  private val byTime = opened.stores(2)
  private val until = Saturating.plus(plan.timeMs, plan.missing match { case Missing.Wait(ms) => ms; case _ => 0L })
  private val keyTypes = plan.rightKeys.map(_.dataType)
  private val keys = keyTypes.indices.map(i => BoundReference(i, keyTypes(i), nullable = true))
  private def extra(i: Int) = BoundReference(keyTypes.length + i, LongType, nullable = false)
  // (key..., deadline, number) and the same with the time first
  private val keyedRow = GeneratedCode.projection(keys ++ Seq(extra(0), extra(1)))
  private val timedRow = GeneratedCode.projection(Seq(extra(0), extra(1)) ++ keys)
  private val timedToKeyed = GeneratedCode.projection(keyTypes.indices.map(i =>
    BoundReference(i + 2, keyTypes(i), nullable = true)) ++ Seq(
    BoundReference(0, LongType, nullable = false), BoundReference(1, LongType, nullable = false)))
  private val keptColumns = GeneratedCode.projection(plan.waiting, plan.left)
  private val allColumns = GeneratedCode.projection(plan.left.map(a =>
    if (plan.waiting.exists(_.semanticEquals(a))) a else Literal(null, a.dataType)), plan.waiting)
  private val empty = GeneratedCode.projection(StructType(StructField("none", BooleanType) :: Nil))
    .apply(InternalRow(null)).copy()
  private val pair = new GenericInternalRow(2)
  private val joined = new JoinedRow
  private val cameFor = mutable.LinkedHashSet.empty[UnsafeRow]
  private var number = plan.batchId << 32
  private val byEvent = if (plan.held.isDefined) opened.stores(3) else null
  private val eventAt = plan.held.fold(-1)(h => plan.waiting.indexWhere(_.semanticEquals(h)))
  private val keyAlone = GeneratedCode.projection(keys)
  private val deadlineRow = GeneratedCode.projection(Array[DataType](LongType))
  private val deadline = new GenericInternalRow(1)
  if (byEvent != null && plan.first) holdOldRows()

  /** A row that came behind the watermark was late before it waited, and would stop it for nothing. */
  private def holds(row: UnsafeRow): Boolean =
    byEvent != null && !row.isNullAt(eventAt) && row.getLong(eventAt) >= plan.watermark

  /** @param key the key alone; the row is in the state already, under its deadline and number */
  private def holdWatermark(key: InternalRow, row: UnsafeRow, until: Long, number: Long): Unit = {
    pair.setLong(0, row.getLong(eventAt)); pair.setLong(1, number)
    deadline.setLong(0, until)
    byEvent.put(timedRow(joined(key, pair)), deadlineRow(deadline))
  }

  private def letWatermarkGo(key: InternalRow, row: UnsafeRow, number: Long): Unit =
    if (byEvent != null && !row.isNullAt(eventAt)) {
      pair.setLong(0, row.getLong(eventAt)); pair.setLong(1, number)
      byEvent.remove(timedRow(joined(key, pair)))
    }

  /** Rows that have waited since before the watermark was held: their state has no such store. */
  private def holdOldRows(): Unit = {
    val some = byEvent.iterator()
    if (!(try some.hasNext finally some.close())) {
      val scan = byKey.iterator()
      try scan.foreach { p =>
        if (holds(p.value))
          holdWatermark(keyAlone(p.key), p.value, p.key.getLong(keyTypes.length), p.key.getLong(keyTypes.length + 1))
      } finally scan.close()
    }
  }

  def tableRowCame(key: UnsafeRow): Unit = {
    val some = byKey.prefixScan(key)
    val found = try some.hasNext finally some.close()
    if (found) cameFor += key.copy()
  }

  def hold(key: UnsafeRow, row: UnsafeRow): Unit = {
    number += 1
    pair.setLong(0, until); pair.setLong(1, number)
    joined(key, pair)
    val kept = keptColumns(row)
    byKey.put(keyedRow(joined), kept)
    byTime.put(timedRow(joined), empty)
    if (holds(kept)) holdWatermark(key, kept, until, number)
    plan.counters.waitingAdded.inc()
  }

  /** The waiting rows whose table row is there now, joined; they are waiting no more. */
  def release(find: UnsafeRow => UnsafeRow): Iterator[InternalRow] =
    cameFor.iterator.flatMap { key =>
      val value = find(key) // as of the end of this batch's table rows: it may be deleted again
      if (value == null) Iterator.empty
      else {
        val rows = mutable.ArrayBuffer.empty[(UnsafeRow, UnsafeRow)]
        val scan = byKey.prefixScan(key)
        try scan.foreach(p => rows += ((p.key.copy(), p.value.copy()))) finally scan.close()
        rows.iterator.map { case (k, row) =>
          pair.setLong(0, k.getLong(keyTypes.length)); pair.setLong(1, k.getLong(keyTypes.length + 1))
          byTime.remove(timedRow(joined(key, pair)))
          byKey.remove(k)
          letWatermarkGo(key, row, k.getLong(keyTypes.length + 1))
          plan.counters.waitingRemoved.inc()
          joiner.join(allColumns(row), value)
        }
      }
    }

  /** The rows whose time is up at this batch's time, as they came; they are waiting no more. */
  def expire(): Iterator[UnsafeRow] = {
    val due = mutable.ArrayBuffer.empty[UnsafeRow]
    val scan = byTime.iterator()
    try {
      var more = true
      while (more && scan.hasNext) {
        val k = scan.next().key
        if (k.getLong(0) <= plan.timeMs) due += k.copy() else more = false
      }
    } finally scan.close()
    due.iterator.map { timed =>
      val keyed = timedToKeyed(timed)
      val kept = byKey.get(keyed).copy()
      letWatermarkGo(keyAlone(keyed), kept, timed.getLong(1))
      byKey.remove(keyed); byTime.remove(timed)
      plan.counters.waitingRemoved.inc()
      allColumns(kept)
    }
  }

  /** Tells the driver when the next row is due, and how far the watermark may go. */
  def close(): Unit = {
    if (byEvent != null) {
      val first = byEvent.iterator()
      try if (first.hasNext) {
        val p = first.next()
        plan.times.foreach(_.saw(p.key.getLong(0), p.value.getLong(0)))
      } finally first.close()
    }
    val scan = byTime.iterator()
    try if (scan.hasNext) plan.deadlines.foreach(_.add(scan.next().key.getLong(0)))
    finally scan.close()
  }
}
