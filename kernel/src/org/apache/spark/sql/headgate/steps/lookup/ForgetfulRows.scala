package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores}
import org.apache.spark.sql.headgate.store.CachedStore
import org.apache.spark.sql.types._

/**
 * The rows of a table with a ttl. Each has the time from which it is over, and is in a second store in
 * the order of those times: what is over is found without a scan of what is not.
 *
 * Each batch forgets all that is over before it reads anything, so neither a lookup nor who reads the
 * state sees such a row. What follows from it: every row in the first store has one entry in the second.
 */
final class ForgetfulRows(ttl: TableTtl, plan: LookupPlan, opened: OpenStores, rows: CachedStore) {
  private val byTime = opened.stores.last
  private val keyTypes = plan.rightKeys.map(_.dataType)
  private val updatedAt = ttl.time.fold(-1)(LookupTask.indexOf(_, plan.right))
  private val timed = GeneratedCode.projection(BoundReference(keyTypes.length, LongType, nullable = false) +:
    keyTypes.zipWithIndex.map { case (t, i) => BoundReference(i, t, nullable = true) })
  private val keyOf = GeneratedCode.projection(keyTypes.zipWithIndex.map { case (t, i) =>
    BoundReference(i + 1, t, nullable = true)
  })
  private val row = BoundReference(0, plan.value.dataType, nullable = true)
  private val rowAlone = GeneratedCode.projection(row :: Nil)
  private val rowAndEnd = GeneratedCode.projection(Seq(row, BoundReference(1, LongType, nullable = false)))
  private val none = GeneratedCode.projection(Array[DataType](BooleanType)).apply(InternalRow(null)).copy()
  private val noKey = new GenericInternalRow(keyTypes.length)
  private val one = new GenericInternalRow(1)
  private val joined = new JoinedRow
  if (plan.first) beginWithOldRows()

  private def entry(key: InternalRow, end: Long): UnsafeRow = {
    one.setLong(0, end)
    timed(joined(key, one))
  }

  private def endOf(updated: InternalRow): Long =
    if (updatedAt < 0) ttl.end(ttl.now)
    else if (updated.isNullAt(updatedAt)) TableTtl.Never
    else ttl.end(updated.getLong(updatedAt))

  /** Whether a table row that comes is over already: nothing of its key is there then. */
  def isOver(updated: InternalRow): Boolean = ttl.isOver(endOf(updated))

  /** The row of a key as lookups give it, or null; good until the next call. */
  def get(key: UnsafeRow): UnsafeRow = {
    val kept = rows.get(key)
    if (kept == null) null else rowAlone(kept)
  }

  def put(key: UnsafeRow, value: UnsafeRow, updated: InternalRow): Unit = {
    val end = endOf(updated)
    val old = rows.get(key)
    val isNew = old == null || old.getLong(1) != end
    if (old != null && isNew) byTime.remove(entry(key, old.getLong(1)))
    store(key, value, end, isNew)
  }

  private def store(key: UnsafeRow, value: UnsafeRow, end: Long, isNew: Boolean): Unit = {
    if (isNew) byTime.put(entry(key, end), none)
    one.setLong(0, end)
    rows.put(key, rowAndEnd(joined(value, one)))
  }

  /** Removes the row of a key, which is there. */
  def remove(key: UnsafeRow): Unit = {
    byTime.remove(entry(key, rows.get(key).getLong(1)))
    rows.remove(key)
  }

  /** Removes all rows that are over now. */
  def forget(removed: () => Unit): Unit = {
    // what was over before is gone: its deleted entries, which RocksDB may still have, are passed by
    val scan = ttl.before.fold(byTime.iterator())(t => byTime.rangeScan(Some(entry(noKey, t)), None))
    try {
      var more = true
      while (more && scan.hasNext) {
        val due = scan.next().key
        if (!ttl.isOver(due.getLong(0))) more = false
        else {
          rows.remove(keyOf(due))
          byTime.remove(due)
          removed()
        }
      }
    } finally scan.close()
  }

  /** Rows of the time before the table had a ttl: they count as updated now. */
  private def beginWithOldRows(): Unit = {
    val some = byTime.iterator()
    if (!(try some.hasNext finally some.close())) {
      val end = if (ttl.now == Long.MinValue) TableTtl.Never else ttl.end(ttl.now)
      val scan = opened.stores.head.iterator()
      try scan.foreach(p => store(p.key, rowAlone(p.value), end, isNew = true)) finally scan.close()
    }
  }
}
