package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._

/** Makes of one row what [[Buffers]] keeps of a window: the buffers of that row alone. */
final class RowBuffers(aggregates: Seq[AggregateExpression], input: Seq[Attribute]) {
  private val functions: Seq[AggregateFunction] = {
    var offset = 0
    aggregates.map { a =>
      val function = a.aggregateFunction match {
        case f: ImperativeAggregate =>
          BindReferences.bindReference(f, input).withNewMutableAggBufferOffset(offset)
        case f => f
      }
      offset += function.aggBufferSchema.length
      function
    }
  }
  private val buffers = functions.flatMap(_.aggBufferAttributes)
  private val buffer = new SpecificInternalRow(buffers.map(_.dataType))
  private val joined = new JoinedRow
  private val imperative = functions.zip(aggregates).collect { case (f: ImperativeAggregate, a) =>
    (f, a.filter.map(GeneratedCode.predicate(_, input)))
  }
  private val typed = functions.collect { case f: TypedImperativeAggregate[_] => f }

  private val beginning = GeneratedCode.assignment(functions.flatMap {
    case d: DeclarativeAggregate => d.initialValues
    case f => Seq.fill(f.aggBufferAttributes.length)(NoOp)
  }, Nil, buffer)
  private val updating = GeneratedCode.assignment(functions.zip(aggregates).flatMap {
    case (d: DeclarativeAggregate, a) => a.filter match {
      case Some(condition) => d.updateExpressions.zip(d.aggBufferAttributes).map { case (update, old) =>
        If(condition, update, old)
      }
      case None => d.updateExpressions
    }
    case (f, _) => Seq.fill(f.aggBufferAttributes.length)(NoOp)
  }, buffers ++ input, buffer)
  // one row since the last pane, no panes, no flags
  private val stored = GeneratedCode.projection(buffers ++ Seq(Literal(1L), Literal(0), Literal(0)), buffers)

  /** Good until the next call. */
  def of(row: InternalRow): UnsafeRow = {
    beginning(InternalRow.empty)
    updating(joined(buffer, row))
    imperative.foreach { case (f, filter) =>
      f.initialize(buffer)
      if (filter.forall(_.eval(row))) f.update(buffer, row)
    }
    typed.foreach(_.serializeAggregateBufferInPlace(buffer))
    stored(buffer)
  }
}
