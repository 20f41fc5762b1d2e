package org.apache.spark.sql.headgate.steps.core

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types.DataType

/**
 * Aggregation buffers in state, merged and evaluated by Spark's own functions of any kind
 * (declarative, imperative and typed), outside Spark's operators.
 *
 * A row is the buffers as they are stored, then the step's own columns of the types `book`. Rows that
 * come back are good until the next call.
 */
final class AggregateBuffers(aggregates: Seq[AggregateExpression], book: Seq[DataType]) {
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
  private val own = book.map(AttributeReference("own", _)())
  /** How many columns the buffers are. */
  val size: Int = buffers.length

  private val imperative = functions.zipWithIndex.collect { case (f: ImperativeAggregate, i) => (f, i) }
  private val typed = functions.collect { case f: TypedImperativeAggregate[_] => f }
  private def starts(f: AggregateFunction): Int = functions.takeWhile(_ ne f).map(_.aggBufferSchema.length).sum
  private val firstBuffer = imperative.map { case (f, _) => starts(f) }

  private val buffer = new SpecificInternalRow(buffers.map(_.dataType))
  private val joined = new JoinedRow
  private val whole = new JoinedRow
  private val stored = GeneratedCode.projection(buffers ++ own, buffers ++ own)

  /** An aggregate that joined the step later has nulls in older rows: as if it began there. */
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
  }, buffers ++ own ++ incoming ++ own.map(_.newInstance()), buffer)

  private val beginning = GeneratedCode.assignment(functions.toSeq.flatMap {
    case d: DeclarativeAggregate => d.initialValues
    case f => Seq.fill(f.aggBufferAttributes.length)(NoOp)
  }, Nil, buffer)

  private val results = new SpecificInternalRow(aggregates.map(_.dataType))
  private val evaluating = GeneratedCode.assignment(functions.toSeq.map {
    case d: DeclarativeAggregate => orInitial(d, d.evaluateExpression)
    case _ => NoOp
  }, buffers ++ own, results)

  /** The buffers of two rows as one, with other own columns. */
  def merge(row: UnsafeRow, in: UnsafeRow, own: InternalRow): UnsafeRow = {
    merging(joined(row, in))
    var i = 0
    while (i < imperative.length) {
      val f = imperative(i)._1
      f.initialize(buffer)
      if (!row.isNullAt(firstBuffer(i))) f.merge(buffer, row)
      f.merge(buffer, in)
      i += 1
    }
    written(own)
  }

  /** Buffers with nothing in them. */
  def empty(own: InternalRow): UnsafeRow = {
    beginning(InternalRow.empty)
    imperative.foreach(_._1.initialize(buffer))
    written(own)
  }

  private def written(own: InternalRow): UnsafeRow = {
    typed.foreach(_.serializeAggregateBufferInPlace(buffer))
    stored(whole(buffer, own))
  }

  /** The results of the aggregate functions. */
  def evaluate(row: UnsafeRow): InternalRow = {
    evaluating(row)
    var i = 0
    while (i < imperative.length) {
      val (f, at) = imperative(i)
      f.initialize(buffer)
      if (!row.isNullAt(firstBuffer(i))) f.merge(buffer, row)
      results.update(at, f.eval(buffer))
      i += 1
    }
    results
  }
}
