package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._

/**
 * The aggregation buffers of a window, merged and evaluated by Spark's own functions of any kind
 * (declarative, imperative and typed), outside Spark's operators.
 *
 * A window's row is the buffers as they are stored, then since, pane and flags, and the start of a
 * session. Rows that come back are good until the next call.
 */
final class Buffers(aggregates: Seq[AggregateExpression], session: Boolean) {
  private val functions: Array[AggregateFunction] = {
    var offset = 0
    aggregates.map { a =>
      val function = a.aggregateFunction match {
        case f: ImperativeAggregate =>
          f.withNewInputAggBufferOffset(offset).withNewMutableAggBufferOffset(offset)
        case f => f
      }
      offset += function.aggBufferSchema.length
      function
    }.toArray
  }
  private val buffers = functions.toSeq.flatMap(_.aggBufferAttributes)
  private val incoming = functions.toSeq.flatMap(_.inputAggBufferAttributes)
  private val book = Seq(AttributeReference(WindowStores.Since, LongType)(),
    AttributeReference(WindowStores.Pane, IntegerType)(),
    AttributeReference(WindowStores.Flags, IntegerType)()) ++
    (if (session) Seq(AttributeReference(WindowStores.Start, LongType)()) else Nil)
  val size: Int = buffers.length
  private val (sinceAt, paneAt, flagsAt, startAt) = (size, size + 1, size + 2, size + 3)

  private val imperative = functions.zipWithIndex.collect { case (f: ImperativeAggregate, i) => (f, i) }
  private val typed = functions.collect { case f: TypedImperativeAggregate[_] => f }
  private def starts(f: AggregateFunction): Int = functions.takeWhile(_ ne f).map(_.aggBufferSchema.length).sum
  private val firstBuffer = imperative.map { case (f, _) => starts(f) }

  private val buffer = new SpecificInternalRow(buffers.map(_.dataType))
  private val bookRow = new SpecificInternalRow(book.map(_.dataType))
  private val joined = new JoinedRow
  private val whole = new JoinedRow
  private val stored = GeneratedCode.projection(buffers ++ book, buffers ++ book)

  /** An aggregate that joined the step later has nulls in older windows: as if it began there. */
  private def orInitial(f: DeclarativeAggregate, merge: Expression): Expression = {
    val initial = f.aggBufferAttributes.zip(f.initialValues).collect {
      case (a, v: Literal) if v.value != null => a.exprId -> v
    }.toMap
    merge.transformUp { case a: AttributeReference if initial.contains(a.exprId) =>
      Coalesce(Seq(a.withNullability(true), initial(a.exprId)))
    }
  }

  private val merging = GeneratedCode.assignment(functions.toSeq.flatMap {
    case d: DeclarativeAggregate => d.mergeExpressions.map(orInitial(d, _))
    case f => Seq.fill(f.aggBufferAttributes.length)(NoOp)
  }, buffers ++ book ++ incoming ++ book.map(_.newInstance()), buffer)

  private val beginning = GeneratedCode.assignment(functions.toSeq.flatMap {
    case d: DeclarativeAggregate => d.initialValues
    case f => Seq.fill(f.aggBufferAttributes.length)(NoOp)
  }, Nil, buffer)

  private val results = new SpecificInternalRow(aggregates.map(_.dataType))
  private val evaluating = GeneratedCode.assignment(functions.toSeq.map {
    case d: DeclarativeAggregate => orInitial(d, d.evaluateExpression)
    case _ => NoOp
  }, buffers ++ book, results)

  def since(row: UnsafeRow): Long = row.getLong(sinceAt)
  def pane(row: UnsafeRow): Int = row.getInt(paneAt)
  def has(row: UnsafeRow, flag: Int): Boolean = (row.getInt(flagsAt) & flag) != 0

  def start(session: UnsafeRow): Long = session.getLong(startAt)

  /** Changes where a session begins, and whether its on-time row is out. */
  def place(session: UnsafeRow, start: Long, onTime: Boolean): Unit = {
    val others = session.getInt(flagsAt) & ~WindowStores.OnTime
    session.setLong(startAt, start)
    session.setInt(flagsAt, if (onTime) others | WindowStores.OnTime else others)
  }

  /** A window's row with that of new rows, which have no panes yet, or of another session. */
  def merge(window: UnsafeRow, in: UnsafeRow): UnsafeRow = {
    merging(joined(window, in))
    var i = 0
    while (i < imperative.length) {
      val f = imperative(i)._1
      f.initialize(buffer)
      if (!window.isNullAt(firstBuffer(i))) f.merge(buffer, window)
      f.merge(buffer, in)
      i += 1
    }
    written(since(window) + since(in), math.max(pane(window), pane(in)),
      window.getInt(flagsAt) | in.getInt(flagsAt), if (session) math.min(start(window), start(in)) else 0L)
  }

  /** The window's row after a pane: with nothing in it if panes are discarded. */
  def fired(window: UnsafeRow, flags: Int, discarding: Boolean): UnsafeRow = {
    val (pane, all) = (this.pane(window) + 1, window.getInt(flagsAt) | flags)
    if (!discarding) {
      window.setLong(sinceAt, 0L); window.setInt(paneAt, pane); window.setInt(flagsAt, all)
      window
    } else {
      beginning(InternalRow.empty)
      imperative.foreach(_._1.initialize(buffer))
      written(0L, pane, all, if (session) start(window) else 0L)
    }
  }

  private def written(since: Long, pane: Int, flags: Int, start: Long): UnsafeRow = {
    typed.foreach(_.serializeAggregateBufferInPlace(buffer))
    bookRow.setLong(0, since); bookRow.setInt(1, pane); bookRow.setInt(2, flags)
    if (session) bookRow.setLong(3, start)
    stored(whole(buffer, bookRow))
  }

  /** The results of the aggregate functions. */
  def evaluate(window: UnsafeRow): InternalRow = {
    evaluating(window)
    var i = 0
    while (i < imperative.length) {
      val (f, at) = imperative(i)
      f.initialize(buffer)
      if (!window.isNullAt(firstBuffer(i))) f.merge(buffer, window)
      results.update(at, f.eval(buffer))
      i += 1
    }
    results
  }
}
