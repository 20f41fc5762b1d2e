package org.apache.spark.sql.headgate.steps.top

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores}
import org.apache.spark.sql.headgate.steps.core.{KeySort, SortLimits, StepTask}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.types._

case class TopCounters(in: StepCounter, out: StepCounter, inserted: StepCounter, removed: StepCounter)

/** All that a task needs from the driver; see [[TopRows]]. */
case class TopPlan(n: Int, keys: Seq[Attribute], ids: Seq[Attribute], deleted: Option[Attribute],
    columns: Seq[Attribute], row: Seq[Attribute], order: Seq[SortOrder], shown: Int, keyOf: Seq[Int],
    counters: TopCounters, sort: SortLimits, batchId: Long, failEvery: Int)

/** One partition of one batch, key by key: the ranks whose row is another one leave. */
final class TopTask(plan: TopPlan, opened: OpenStores, input: Iterator[InternalRow],
    finished: TopTask => Unit) extends StepTask {
  import plan.{counters, n}

  /** @param id what the row is kept under, beside the key */
  private final class Kept(val id: UnsafeRow, val row: UnsafeRow)

  private val store = opened.stores.head
  private val sorted = new KeySort(plan.columns, plan.keys, Nil, input, plan.sort)
  private val valueOf = GeneratedCode.projection(plan.row, plan.columns)
  private val idOf = if (plan.ids.isEmpty) null else GeneratedCode.projection(plan.ids, plan.columns)
  private val deletedAt = plan.deleted.fold(-1)(d => plan.columns.indexWhere(_.exprId == d.exprId))
  private val order: Ordering[InternalRow] = GeneratedCode.sorting(plan.order, plan.row)
  private val byOrder: Ordering[Kept] = (a: Kept, b: Kept) => order.compare(a.row, b.row)
  private val idTypes: Seq[DataType] = if (plan.ids.isEmpty) Seq(IntegerType) else plan.ids.map(_.dataType)
  private val keyTypes = plan.keys.map(_.dataType)
  private val fullKey = GeneratedCode.projection((keyTypes ++ idTypes).toArray)
  private val idInKey = GeneratedCode.projection(idTypes.zipWithIndex.map { case (t, i) =>
    BoundReference(keyTypes.length + i, t, nullable = true)
  })
  private val slotRow = GeneratedCode.projection(Array[DataType](IntegerType))
  private val shownOf = GeneratedCode.projection(plan.row.take(plan.shown), plan.row)
  private val rank = AttributeReference("rank", IntegerType)()
  private val upsert = GeneratedCode.projection(plan.row.take(plan.shown) ++ Seq(rank, Literal(false)), plan.row :+ rank)
  private val deletion = GeneratedCode.projection(plan.keyOf.zip(plan.row).map {
    case (-1, column) => Literal(null, column.dataType)
    case (i, _) => plan.keys(i)
  } ++ Seq(rank, Literal(true)), plan.keys :+ rank)
  private val rankRow = new GenericInternalRow(1)
  private val joined = new JoinedRow

  private var ahead: UnsafeRow = null
  private var out: Iterator[InternalRow] = Iterator.empty
  advance()

  private def advance(): Unit = ahead = if (sorted.hasNext) { counters.in.inc(); sorted.next() } else null

  private def kept(key: UnsafeRow): mutable.ArrayBuffer[Kept] = {
    val scan = store.prefixScan(key)
    try mutable.ArrayBuffer.from(scan.map(p => new Kept(idInKey(p.key).copy(), p.value.copy()))) finally scan.close()
  }

  private def put(key: UnsafeRow, one: Kept): Unit = { store.put(fullKey(joined(key, one.id)), one.row); rowsStored += 1 }

  private def nextKey(): Iterator[InternalRow] = {
    val key = sorted.key.copy()
    val rows = kept(key)
    rows.sortInPlace()(byOrder)
    val before = rows.take(n).map(k => shownOf(k.row).copy())
    val after = if (idOf == null) takeRows(key, rows) else takeChanges(key, rows)
    (0 until math.max(before.length, after.length)).iterator.flatMap { i =>
      rankRow.setInt(0, i + 1)
      if (i >= after.length) Iterator.single(deletion(joined(key, rankRow)))
      else if (i < before.length && before(i) == shownOf(after(i).row)) Iterator.empty
      else Iterator.single(upsert(joined(after(i).row, rankRow)))
    }
  }

  /** Walks over the rows of the key that came. */
  private def ofThisKey(work: UnsafeRow => Unit): Unit = {
    var more = true
    while (more) {
      work(ahead)
      advance()
      more = ahead != null && !sorted.isFirst
    }
  }

  /** Rows that only come: those behind the first ones are never needed again. */
  private def takeRows(key: UnsafeRow, best: mutable.ArrayBuffer[Kept]): mutable.ArrayBuffer[Kept] = {
    val fresh = mutable.Set.empty[Kept]
    // the job may have asked for more rows before
    while (best.length > n) remove(key, best.remove(best.length - 1))
    ofThisKey { row =>
      val value = valueOf(row)
      val full = best.length == n
      if (!full || order.compare(value, best.last.row) < 0) {
        val id = if (full) best.last.id else slot(free(best))
        if (full) fresh -= best.remove(n - 1)
        else counters.inserted.inc()
        val one = new Kept(id, value.copy())
        fresh += one
        val at = best.search(one)(byOrder).insertionPoint
        best.insert(at, one)
      }
    }
    fresh.foreach(put(key, _))
    best
  }

  private def free(best: mutable.ArrayBuffer[Kept]): Int = {
    val taken = best.iterator.map(_.id.getInt(0)).toSet
    (0 until n).find(!taken(_)).get
  }

  private def slot(number: Int): UnsafeRow = {
    val row = new GenericInternalRow(1)
    row.setInt(0, number)
    slotRow(row).copy()
  }

  private def remove(key: UnsafeRow, one: Kept): Unit = {
    store.remove(fullKey(joined(key, one.id)))
    rowsRemoved += 1
    counters.removed.inc()
  }

  /** Changes: any row may become one of the first when others go. */
  private def takeChanges(key: UnsafeRow, rows: mutable.ArrayBuffer[Kept]): mutable.ArrayBuffer[Kept] = {
    val all = mutable.LinkedHashMap.from(rows.map(k => k.id -> k))
    ofThisKey { row =>
      val id = idOf(row).copy()
      if (row.getBoolean(deletedAt)) all.remove(id).foreach(remove(key, _))
      else {
        val one = new Kept(id, valueOf(row).copy())
        if (all.put(id, one).isEmpty) counters.inserted.inc()
        put(key, one)
      }
    }
    mutable.ArrayBuffer.from(all.values).sorted(byOrder).take(n)
  }

  override protected def work(): Unit = {
    if (out.hasNext) { current = out.next(); counters.out.inc(); rowsOut += 1 }
    else if (ahead != null) out = nextKey()
    else {
      ended = true
      finished(this)
      TaskFailures.maybeFail(plan.failEvery, plan.batchId)
    }
  }
}
