package org.apache.spark.sql.headgate.steps.join

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores}
import org.apache.spark.sql.headgate.steps.core.{KeySort, LeastTimes, SortLimits, StepTask, TimeStore}
import org.apache.spark.sql.headgate.store.CachedStore
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{LeastDeadline, Saturating}
import org.apache.spark.sql.types.StructType

/** @param unmatched by side; null if such rows are dropped */
case class JoinCounters(in: StepCounter, out: StepCounter, late: StepCounter, unmatched: Seq[StepCounter],
    inserted: StepCounter, removed: StepCounter)

/**
 * All that a task of a join needs from the driver; times in microseconds.
 *
 * @param before     the watermark of the batch before: rows behind it are late
 * @param now        this batch's watermark: rows that nothing on time after it can match are forgotten
 * @param order      of the rows of a key
 * @param cacheBytes what all caches of the executor may hold
 * @param blockBytes what rows of a key and side may take before some of them are kept apart
 */
case class JoinPlan(spec: JoinSpec, keys: Seq[Attribute], input: Attribute, time: Attribute, rows: Seq[Attribute],
    columns: Seq[Attribute], test: Option[PairTest], before: Long, now: Long, due: LeastDeadline,
    counters: JoinCounters, batchId: Long, failEvery: Int, order: Seq[Attribute], sort: SortLimits,
    cacheBytes: Long, blockBytes: Int)

/**
 * One partition of one batch, key by key. The rows of a key, a chunk at a time, are matched with the rows
 * that are kept of the other side, then with each other; what may still match later is kept, and what can match
 * no more is forgotten. In the end so are rows of keys that got none.
 */
final class JoinTask(plan: JoinPlan, opened: OpenStores, input: Iterator[InternalRow], partition: Int,
    finished: JoinTask => Unit) extends StepTask {
  import JoinSpec.{Left, Right}
  import JoinTask._
  import plan.{before, counters, now, spec}

  private val keyTypes = plan.keys.map(_.dataType)
  private val kept = new KeptRows(new CachedStore(opened, plan.cacheBytes), keyTypes, plan.blockBytes)
  private val index = new TimeStore(opened.stores(1), keyTypes, LeastTimes.of(opened, 1))
  private val sorted = new KeySort(plan.columns, plan.keys, plan.order, input, plan.sort)
  private val out = new JoinOutput(plan.rows.map(_.dataType), partition)

  private def indexOf(a: Attribute): Int = plan.columns.indexWhere(_.exprId == a.exprId)
  private val inputAt = indexOf(plan.input)
  private val timeAt = indexOf(plan.time)
  private val rowAt = plan.rows.map(indexOf).toArray
  private val widths = plan.rows.map(_.dataType.asInstanceOf[StructType].length)
  private val own = widths.map(new UnsafeRow(_)).toArray
  private val pairs = new PairScan(spec, widths, pairTest)

  private var number = plan.batchId << 32
  private var key: UnsafeRow = null
  private val fresh = Array(new TimedRows, new TimedRows)
  private var held = 0L // bytes of this chunk's rows, each as often as it was taken
  private val said = mutable.Queue.empty[InternalRow]
  private var ahead: UnsafeRow = null // a row that was taken from the sorted ones and belongs to the next chunk
  private var aheadIsFirst = false
  private var stage = Idle
  private var block = 0 // the next one to be seen in this stage
  private var scanned: Block = null // the one whose pairs are being gone through
  private var scannedRows: TimedRows = null
  private lazy val dueKeys = keysDue()

  private def pairTest: (UnsafeRow, UnsafeRow) => Boolean = plan.test match {
    case None => (_, _) => true
    case Some(t) =>
      val test = GeneratedCode.predicate(t.condition, t.input)
      val pairRow = new JoinedRow
      val rightRow = new GenericInternalRow(1)
      (left, right) => { rightRow.update(0, right); test.eval(pairRow(left, rightRow)) }
  }

  override protected def work(): Unit =
    if (said.nonEmpty) give(said.dequeue())
    else if (pairs.advance()) { counters.out.inc(); give(out.pair(pairs.left, pairs.right, pairs.time)) }
    else if (stage != Idle) proceed()
    else if (ahead != null || sorted.hasNext) takeChunk()
    else if (dueKeys.hasNext) { key = dueKeys.next().asInstanceOf[UnsafeRow]; begin(Forget) }
    else end()

  private def give(row: InternalRow): Unit = { current = row; rowsOut += 1 }

  private def begin(next: Int): Unit = { stage = next; block = 0 }

  /** Goes on with a key, by as much as may give rows. */
  private def proceed(): Unit = stage match {
    case NewLefts => matchKept(Right, KeptRights)
    case KeptRights => matchHead(Right, NewRights)
    case NewRights => matchKept(Left, KeptLefts)
    case KeptLefts => matchHead(Left, NewPairs)
    case NewPairs => pairs.start(fresh(Left), Left, fresh(Right)); begin(Settle)
    case Settle =>
      settle(Left)
      settle(Right)
      if (isLastChunk) begin(Forget) else { kept.relieve(); begin(Idle) }
    case Forget => if (!forgetBlock()) { forgetHead(Left); forgetHead(Right); closeKey(); begin(Idle) }
  }

  /** Whether no more rows of the key come in this batch. */
  private def isLastChunk: Boolean = ahead == null || aheadIsFirst

  /** Takes rows of one key, all of them unless they are many. */
  private def takeChunk(): Unit = {
    fresh.foreach(_.clear())
    held = 0
    var taken = 0
    var more = true
    while (more) {
      if (ahead == null && sorted.hasNext) { ahead = sorted.next(); aheadIsFirst = sorted.isFirst }
      val isFull = taken == ChunkRows || held >= ChunkBytes
      if (ahead == null || isFull || aheadIsFirst && taken > 0) more = false
      else {
        if (aheadIsFirst) { key = sorted.key; if (!key.anyNull()) kept.open(key) }
        take(ahead)
        ahead = null
        taken += 1
      }
    }
    if (!key.anyNull()) { fresh.foreach(_.arrange()); begin(NewLefts) }
  }

  private def take(row: UnsafeRow): Unit = {
    counters.in.inc()
    val side = row.getByte(inputAt).toInt
    val isLate = row.isNullAt(timeAt) || {
      val time = row.getLong(timeAt)
      if (spec.windows.isEmpty) !takeAt(row, side, time)
      else spec.times(time).count(takeAt(row, side, _)) == 0
    }
    if (isLate) {
      counters.late.inc()
      hold(row)
      said += out.side(JoinOutput.Late, side, ownRow(row, side), None).copy()
    }
  }

  private def takeAt(row: UnsafeRow, side: Int, time: Long): Boolean = {
    val onTime = time >= before
    if (onTime) hold(row)
    if (onTime && key.anyNull()) leave(side, time, ownRow(row, side))
    else if (onTime) { number += 1; fresh(side).add(time, number, row, rowAt(side)) }
    onTime
  }

  private def hold(row: UnsafeRow): Unit = held += row.getSizeInBytes

  private def ownRow(row: UnsafeRow, side: Int): UnsafeRow = row.getStruct(rowAt(side), widths(side))

  /** Goes through the pairs of a side's next block with new rows of the other. */
  private def matchKept(side: Int, next: Int): Unit = {
    noteMatches()
    val mine = fresh(1 - side)
    scanned = null
    while (scanned == null && block < kept.blocks.length && mine.size > 0) {
      val found = kept.blocks(block)
      block += 1
      if (found.side == side && mayMatch(found, mine)) scanned = found
    }
    if (scanned == null) begin(next)
    else {
      scannedRows = kept.load(scanned)
      pairs.start(scannedRows, side, mine)
    }
  }

  private def mayMatch(found: Block, mine: TimedRows): Boolean = {
    val first = mine.firstFrom(Saturating.plus(found.first, spec.earliest(found.side)))
    first < mine.size && mine.time(first) <= spec.lastMatch(found.side, found.last)
  }

  /** Keeps the block that has been gone through, if rows of it have got their match. */
  private def noteMatches(): Unit = if (scanned != null && scannedRows.isNoted) kept.save(scanned, scannedRows)

  private def matchHead(side: Int, next: Int): Unit = { pairs.start(kept.rows(side), side, fresh(1 - side)); begin(next) }

  /** How many of the first rows can match no more. */
  private def over(side: Int, rows: TimedRows): Int =
    if (now == Long.MaxValue) rows.size
    else if (now == Long.MinValue) 0
    else rows.firstFrom(limit(side))

  /** Before this time, a side's rows can match no more. */
  private def limit(side: Int): Long = Saturating.minus(now, spec.latest(side))

  /**
   * New rows that may have more matches are kept; of the others, those without one leave. Rows that are on
   * time may be behind this batch's watermark: until the last chunk each of them may still get a match.
   */
  private def settle(side: Int): Unit = {
    val mine = fresh(side)
    val gone = if (isLastChunk) over(side, mine) else 0
    leaveFirst(side, mine, gone)
    kept.add(side, mine, gone)
    rowsStored += mine.size - gone
    counters.inserted.add(mine.size - gone)
  }

  private def leaveFirst(side: Int, rows: TimedRows, count: Int): Unit = if (spec.gives(side)) {
    (0 until count).foreach(n => if (!rows.isMatched(n)) leave(side, rows.time(n), rows.row(n, own(side))))
  }

  /** A row that has no match and can have none leaves, if such rows do. */
  private def leave(side: Int, time: Long, row: UnsafeRow): Unit = {
    // with the time of the last row that might have matched: behind the watermark it would be late
    val at = Some(math.max(time, spec.lastMatch(side, time)))
    spec.unmatched(side) match {
      case Unmatched.Drop =>
      case Unmatched.Null =>
        counters.unmatched(side).inc()
        counters.out.inc()
        said += out.side(JoinOutput.Main, side, row, at).copy()
      case Unmatched.Side =>
        counters.unmatched(side).inc()
        said += out.side(if (side == Left) JoinOutput.UnmatchedLeft else JoinOutput.UnmatchedRight, side, row, at).copy()
    }
  }

  /** Forgets rows of the next block that has some; false if there is none. */
  private def forgetBlock(): Boolean = {
    var found: Block = null
    while (found == null && block < kept.blocks.length) {
      val next = kept.blocks(block)
      val time = if (spec.gives(next.side)) next.first else next.last
      if (now == Long.MaxValue || now != Long.MinValue && time < limit(next.side)) found = next else block += 1
    }
    if (found != null) forget(found)
    found != null
  }

  private def forget(found: Block): Unit = {
    val side = found.side
    val isOver = now == Long.MaxValue || found.last < limit(side)
    if (isOver && !spec.gives(side)) removed(found.rows)
    else {
      val mine = kept.load(found)
      val gone = over(side, mine)
      leaveFirst(side, mine, gone)
      mine.drop(gone)
      removed(gone)
      if (!isOver) kept.save(found, mine)
    }
    if (isOver) kept.remove(found)
  }

  private def forgetHead(side: Int): Unit = {
    val mine = kept.rows(side)
    val gone = over(side, mine)
    leaveFirst(side, mine, gone)
    kept.drop(side, gone)
    removed(gone)
  }

  private def removed(count: Int): Unit = { rowsRemoved += count; counters.removed.add(count) }

  private def closeKey(): Unit = {
    kept.relieve()
    val next = nextDue
    val due = kept.due
    // one that is too early is left: the key is looked at then, and gets its next
    if (next != due && (next == KeptRows.Never || due == KeptRows.Never || next < due || due < now)) {
      if (due != KeptRows.Never) index.remove(key, due, 0)
      if (next != KeptRows.Never) index.put(key, next, 0)
      kept.setDue(next)
    }
    kept.close()
  }

  /** When the key is to be looked at: when a row leaves, and when all of them can be forgotten. */
  private def nextDue: Long = {
    var last = KeptRows.Never
    var leaves = Long.MaxValue
    def see(side: Int, latest: Long): Unit = last = math.max(last, spec.lastMatch(side, latest))
    def seeLeaving(side: Int, first: Long): Unit = leaves = math.min(leaves, spec.lastMatch(side, first))
    kept.blocks.foreach { b => see(b.side, b.last); if (spec.gives(b.side)) seeLeaving(b.side, b.first) }
    SIDES.foreach { side =>
      val mine = kept.rows(side)
      if (mine.size > 0) {
        see(side, mine.time(mine.size - 1))
        if (spec.gives(side)) {
          var n = 0
          while (n < mine.size && mine.isMatched(n)) n += 1
          if (n < mine.size) seeLeaving(side, mine.time(n))
        }
      }
    }
    if (last == KeptRows.Never) last else math.min(leaves, spec.rounded(last))
  }

  /** Keys that got no rows in this batch, and have some that can match no more. */
  private def keysDue(): Iterator[InternalRow] =
    if (now == Long.MinValue) Iterator.empty
    else index.take(if (now == Long.MaxValue) now else now - 1) { (key, time, _) =>
      kept.open(key)
      kept.setDue(KeptRows.Never)
      Iterator.single(key)
    }

  private def end(): Unit = {
    ended = true
    index.first.foreach(plan.due.add(_))
    finished(this)
    kept.committed()
    LeastTimes.keepOnSuccess(opened, 1, index.least)
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}

object JoinTask {
  /** So many rows of a key are held in memory at once. */
  private val ChunkRows = 1024
  /** Fewer if they are wide, or have many windows: the row that reaches this is the last. */
  private val ChunkBytes = 16L << 20
  private val SIDES = Array(JoinSpec.Left, JoinSpec.Right)

  // where a key is: the names of what is matched or done next
  private val Idle = 0
  private val NewLefts = 1
  private val KeptRights = 2
  private val NewRights = 3
  private val KeptLefts = 4
  private val NewPairs = 5
  private val Settle = 6
  private val Forget = 7
}
