package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores}
import org.apache.spark.sql.types._

/**
 * Stream rows held until the table's watermark has passed their time, in the order of that time. Where they hold
 * the job's watermark they are by event time in another store, whose first row says how far it may go.
 */
final class UntilMark(plan: AsOfPlan, opened: OpenStores) {
  private val byTime = opened.stores(3)
  private val byEvent = if (plan.held.isDefined) opened.stores(4) else null
  private val keyTypes = plan.rightKeys.map(_.dataType)
  private val timed = GeneratedCode.projection(Seq(0, 1).map(i =>
    BoundReference(keyTypes.length + i, LongType, nullable = false)) ++
    keyTypes.indices.map(i => BoundReference(i, keyTypes(i), nullable = true)))
  private val keyOf = GeneratedCode.projection(keyTypes.indices.map(i => BoundReference(i + 2, keyTypes(i), nullable = true)))
  private val keptColumns = GeneratedCode.projection(plan.waiting, plan.left)
  private val allColumns = GeneratedCode.projection(plan.left.map(a =>
    if (plan.waiting.exists(_.semanticEquals(a))) a else Literal(null, a.dataType)), plan.waiting)
  private val eventAt = plan.held.fold(-1)(h => plan.waiting.indexWhere(_.semanticEquals(h)))
  private val none = GeneratedCode.projection(Array[DataType](BooleanType)).apply(InternalRow(null)).copy()
  private val pair = new GenericInternalRow(2)
  private val joined = new JoinedRow
  private var number = plan.batchId << 32

  private def entry(key: InternalRow, time: Long, number: Long): UnsafeRow = {
    pair.setLong(0, time); pair.setLong(1, number)
    timed(joined(key, pair))
  }

  def hold(key: UnsafeRow, row: UnsafeRow, time: Long): Unit = {
    number += 1
    val kept = keptColumns(row)
    byTime.put(entry(key, time, number), kept)
    // a row behind the watermark was late before it waited, and would stop it for nothing
    if (byEvent != null && !kept.isNullAt(eventAt) && kept.getLong(eventAt) >= plan.watermark)
      byEvent.put(entry(key, kept.getLong(eventAt), number), none)
    plan.counters.waitingAdded.inc()
  }

  /** The rows whose time the table has passed, the earliest first; they are waiting no more when they are taken. */
  def release(): Iterator[UnsafeRow] = {
    val scan = byTime.iterator()
    Iterator.continually {
      val next = if (scan.hasNext) scan.next() else null
      if (next != null && (next.key.getLong(0) < plan.mark || plan.mark == Long.MaxValue)) {
        val (at, row) = (next.key.copy(), allColumns(next.value).copy())
        byTime.remove(at)
        if (byEvent != null) {
          val time = next.value
          if (!time.isNullAt(eventAt)) byEvent.remove(entry(keyOf(at), time.getLong(eventAt), at.getLong(1)))
        }
        plan.counters.waitingRemoved.inc()
        row
      } else { scan.close(); null }
    }.takeWhile(_ != null)
  }

  /** Tells the driver for which time the first row waits, and how far the watermark may go. */
  def tellNext(): Unit = {
    val first = byTime.iterator()
    try if (first.hasNext) plan.due.add(first.next().key.getLong(0)) finally first.close()
    if (byEvent != null) {
      val least = byEvent.iterator()
      try if (least.hasNext) plan.times.foreach(_.saw(least.next().key.getLong(0), Long.MaxValue)) finally least.close()
    }
  }
}
