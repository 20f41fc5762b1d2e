package org.apache.spark.sql.headgate.steps.join

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores, StoredPair}
import org.apache.spark.sql.headgate.steps.core.{KeySort, LeastTimes, SortLimits, StepTask, TimeStore}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{LeastDeadline, Saturating}
import org.apache.spark.sql.types.StructType

/** @param unmatched by side; null if such rows are dropped */
case class JoinCounters(in: StepCounter, out: StepCounter, late: StepCounter, unmatched: Seq[StepCounter],
    inserted: StepCounter, removed: StepCounter)

/**
 * All that a task of a join needs from the driver; times in microseconds.
 *
 * @param before the watermark of the batch before: rows behind it are late
 * @param now    this batch's watermark: rows that nothing on time after it can match are forgotten
 * @param order  of the rows of a key
 */
case class JoinPlan(spec: JoinSpec, keys: Seq[Attribute], input: Attribute, time: Attribute, rows: Seq[Attribute],
    columns: Seq[Attribute], test: Option[PairTest], before: Long, now: Long, due: LeastDeadline,
    counters: JoinCounters, batchId: Long, failEvery: Int, order: Seq[Attribute], sort: SortLimits)

/**
 * One partition of one batch. The rows of a key, a chunk at a time, are matched with the rows that are
 * kept of the other side, then with each other; what may still match later is kept. Then rows are
 * forgotten that can match no more.
 */
final class JoinTask(plan: JoinPlan, opened: OpenStores, input: Iterator[InternalRow], partition: Int,
    finished: JoinTask => Unit) extends StepTask {
  import JoinSpec.{Left, Right}
  import JoinTask._
  import plan.{before, counters, now, spec}

  private val kept = new KeptRows(opened.stores(0), JoinStores.of(plan.keys.map(_.dataType),
    plan.rows(Left).dataType, plan.rows(Right).dataType).head)
  private val index = new TimeStore(opened.stores(1), plan.keys.map(_.dataType), LeastTimes.of(opened, 1))
  private val sorted = new KeySort(plan.columns, plan.keys, plan.order, input, plan.sort)
  private val test = plan.test.map(t => GeneratedCode.predicate(t.condition, t.input)).orNull
  private val out = new JoinOutput(plan.rows.map(_.dataType), partition)

  private def indexOf(a: Attribute): Int = plan.columns.indexWhere(_.exprId == a.exprId)
  private val inputAt = indexOf(plan.input)
  private val timeAt = indexOf(plan.time)
  private val rowAt = plan.rows.map(indexOf).toArray
  private val rowSize = plan.rows.map(_.dataType.asInstanceOf[StructType].length).toArray
  private val pairRow = new JoinedRow
  private val rightRow = new GenericInternalRow(1)

  private var number = plan.batchId << 32
  private var key: UnsafeRow = null
  private val fresh = Array(new FreshRows, new FreshRows)
  private val said = mutable.Queue.empty[InternalRow]
  private var ahead: UnsafeRow = null // a row that was taken from the sorted ones and belongs to the next chunk
  private var aheadIsFirst = false
  private var output: Iterator[InternalRow] = Iterator.empty
  private var swept = false

  override protected def work(): Unit =
    if (output.hasNext) { current = output.next(); rowsOut += 1 }
    else if (ahead != null || sorted.hasNext) { takeChunk(); output = chunkOutput() }
    else if (!swept) { swept = true; output = sweep() }
    else end()

  /** Takes rows of one key, all of them unless they are many. */
  private def takeChunk(): Unit = {
    fresh.foreach(_.clear())
    var taken = 0
    var more = true
    while (more) {
      if (ahead == null && sorted.hasNext) { ahead = sorted.next(); aheadIsFirst = sorted.isFirst }
      if (ahead == null || aheadIsFirst && taken > 0) more = false
      else {
        if (aheadIsFirst) key = sorted.key
        take(ahead)
        ahead = null
        taken += 1
        more = taken < ChunkRows
      }
    }
    fresh.foreach(_.arrange())
  }

  private def take(row: UnsafeRow): Unit = {
    counters.in.inc()
    val side = row.getByte(inputAt).toInt
    val own = row.getStruct(rowAt(side), rowSize(side))
    var late = true
    if (!row.isNullAt(timeAt)) spec.times(row.getLong(timeAt)).foreach { time =>
      if (time >= before) {
        late = false
        if (key.anyNull()) Option(leaveUnmatched(side, time, own)).foreach(said += _.copy())
        else {
          number += 1
          fresh(side).add(new FreshRow(own.copy(), time, number))
        }
      }
    }
    if (late) { counters.late.inc(); said += out.side(JoinOutput.Late, side, own, None).copy() }
  }

  private def chunkOutput(): Iterator[InternalRow] =
    Iterator.continually(if (said.isEmpty) null else said.dequeue()).takeWhile(_ != null) ++
      keptMatches(Left) ++ keptMatches(Right) ++ freshMatches() ++ settle()

  private def matches(left: UnsafeRow, right: UnsafeRow): Boolean =
    test == null || { rightRow.update(0, right); test.eval(pairRow(left, rightRow)) }

  private def pair(left: UnsafeRow, right: UnsafeRow, time: Long): InternalRow = {
    counters.out.inc()
    out.pair(left, right, time)
  }

  /** Pairs of the new rows of a side with what is kept of the other. */
  private def keptMatches(side: Int): Iterator[InternalRow] = {
    val mine = fresh(side)
    val other = 1 - side
    if (mine.size == 0) Iterator.empty
    else kept.scan(key, other, Saturating.plus(mine(0).time, spec.earliest(side)),
      Saturating.plus(mine(mine.size - 1).time, spec.latest(side))).flatMap(new Matches(_, mine, other))
  }

  /** Pairs of a kept row of a side with new rows of the other. */
  private final class Matches(found: StoredPair, mine: FreshRows, side: Int) extends Iterator[InternalRow] {
    private val time = kept.time(found)
    private val row = kept.row(found, side)
    private var noted = spec.unmatched(side) == Unmatched.Drop || kept.isMatched(found)
    private val until = Saturating.plus(time, spec.latest(side))
    private var at = mine.firstFrom(Saturating.plus(time, spec.earliest(side)))
    private var ready: InternalRow = null

    override def hasNext: Boolean = {
      while (ready == null && at < mine.size && mine(at).time <= until) {
        val fresh = mine(at)
        val (left, right) = if (side == Left) (row, fresh.row) else (fresh.row, row)
        if (matches(left, right)) {
          fresh.matched = true
          if (!noted) { kept.putMatched(found, side); noted = true }
          ready = pair(left, right, math.max(time, fresh.time))
        }
        at += 1
      }
      ready != null
    }

    override def next(): InternalRow = {
      if (!hasNext) throw new NoSuchElementException
      val next = ready
      ready = null
      next
    }
  }

  /** Pairs among the new rows. */
  private def freshMatches(): Iterator[InternalRow] = {
    val rights = fresh(Right)
    if (rights.size == 0) Iterator.empty
    else fresh(Left).iterator.flatMap { left =>
      val until = Saturating.plus(left.time, spec.upper)
      Iterator.range(rights.firstFrom(Saturating.plus(left.time, spec.lower)), rights.size).map(rights(_))
        .takeWhile(_.time <= until).filter(right => matches(left.row, right.row)).map { right =>
          left.matched = true
          right.matched = true
          pair(left.row, right.row, math.max(left.time, right.time))
        }
    }
  }

  /** The latest time of a row that could match this one. */
  private def lastMatch(side: Int, time: Long): Long = Saturating.plus(time, spec.latest(side))

  /** New rows that may have more matches are kept; of the others, those without one leave. */
  private def settle(): Iterator[InternalRow] = Iterator(Left, Right).flatMap { side =>
    val span = spec.span(side)
    var since = 0L // the time of the first row that is forgotten at `due`
    var due = Long.MinValue
    def note(): Unit = if (due != Long.MinValue) { index.put(key, due, side); due = Long.MinValue }
    fresh(side).iterator.flatMap { row =>
      val last = lastMatch(side, row.time)
      if (last >= now && now != Long.MaxValue) {
        kept.put(key, side, row.time, row.number, row.row, row.matched)
        rowsStored += 1
        counters.inserted.inc()
        if (Saturating.minus(row.time, since) > span) note()
        if (due == Long.MinValue) since = row.time
        due = rounded(side, last)
        Iterator.empty
      } else if (row.matched) Iterator.empty
      else Option(leaveUnmatched(side, row.time, row.row)).iterator
    } ++ { note(); Iterator.empty }
  }

  /** What is given of a row that has no match and can have none; null if nothing is. */
  private def leaveUnmatched(side: Int, time: Long, row: UnsafeRow): InternalRow = {
    // with the time of the last row that might have matched: behind the watermark it would be late
    val at = math.max(time, lastMatch(side, time))
    spec.unmatched(side) match {
      case Unmatched.Drop => null
      case Unmatched.Null =>
        counters.unmatched(side).inc()
        counters.out.inc()
        out.side(JoinOutput.Main, side, row, Some(at))
      case Unmatched.Side =>
        counters.unmatched(side).inc()
        out.side(if (side == Left) JoinOutput.UnmatchedLeft else JoinOutput.UnmatchedRight, side, row, Some(at))
    }
  }

  private def rounded(side: Int, time: Long): Long = {
    val grain = spec.grain(side)
    val over = Math.floorMod(time, grain)
    if (over == 0) time else Saturating.plus(time, grain - over)
  }

  /** Forgets the rows that can match no more; those without a match leave. */
  private def sweep(): Iterator[InternalRow] =
    if (now == Long.MinValue) Iterator.empty
    else index.take(if (now == Long.MaxValue) now else now - 1) { (key, due, side) =>
      val first = Saturating.minus(Saturating.minus(due, spec.grain(side) - 1), spec.span(side))
      val to = if (due == Long.MaxValue) due else Saturating.minus(due, spec.latest(side))
      kept.scan(key, side, Saturating.minus(first, spec.latest(side)), to).flatMap { found =>
        val leaving =
          if (kept.isMatched(found)) null else leaveUnmatched(side, kept.time(found), kept.row(found, side))
        kept.remove(found)
        rowsRemoved += 1
        counters.removed.inc()
        Option(leaving).iterator
      }
    }

  private def end(): Unit = {
    ended = true
    index.first.foreach(plan.due.add(_))
    finished(this)
    LeastTimes.keepOnSuccess(opened, 1, index.least)
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}

object JoinTask {
  /** So many rows of a key are held in memory at once. */
  private val ChunkRows = 1024
}
