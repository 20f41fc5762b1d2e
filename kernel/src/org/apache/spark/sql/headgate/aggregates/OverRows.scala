package org.apache.spark.sql.headgate.aggregates

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types.DataType

/** The value of an aggregate function of any kind over rows in memory.
  *
  * @param of over references to the rows' columns, which have these types
  */
final class OverRows(of: AggregateFunction, types: Seq[DataType]) {
  private val columns = types.map(t => AttributeReference("column", t)())
  private val function = of.transform { case BoundReference(at, _, _) => columns(at) }.asInstanceOf[AggregateFunction]
  private val buffer = new SpecificInternalRow(function.aggBufferAttributes.map(_.dataType))
  private val joined = new JoinedRow

  private val evaluate: Array[UnsafeRow] => Any = function match {
    case declared: DeclarativeAggregate =>
      val attributes = declared.aggBufferAttributes
      val begin = GeneratedCode.unshared(declared.initialValues, Nil).target(buffer)
      val update = GeneratedCode.unshared(declared.updateExpressions, attributes ++ columns).target(buffer)
      val end = GeneratedCode.unshared(Seq(declared.evaluateExpression), attributes)
      rows => {
        begin(InternalRow.empty)
        rows.foreach(row => update(joined(buffer, row)))
        end(buffer).get(0, declared.dataType)
      }
    case other: ImperativeAggregate =>
      val bound = BindReferences.bindReference[Expression](other, columns).asInstanceOf[ImperativeAggregate]
        .withNewMutableAggBufferOffset(0)
      rows => {
        bound.initialize(buffer)
        rows.foreach(bound.update(buffer, _))
        bound.eval(buffer)
      }
    case other => throw new IllegalArgumentException(s"cannot evaluate ${other.prettyName} over rows")
  }

  def apply(rows: Array[UnsafeRow]): Any = evaluate(rows)
}
