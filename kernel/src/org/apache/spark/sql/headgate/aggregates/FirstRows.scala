/** Owns the first rows of a group in an order, as an aggregate. */
package org.apache.spark.sql.headgate.aggregates

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.catalyst.trees.BinaryLike
import org.apache.spark.sql.catalyst.util.{ArrayData, GenericArrayData}
import org.apache.spark.sql.headgate.planning.Replays
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._

/**
 * The first rows in an order. The buffer is these rows, the first one first.
 *
 * @param inputs the columns of a row
 * @param names  what they are called
 * @param order  over references to the columns
 */
case class FirstRows(inputs: Seq[Expression], names: Seq[String], order: Seq[SortOrder], n: Int)
  extends DeclarativeAggregate with Replays {
  override def children: Seq[Expression] = inputs
  override def nullable: Boolean = false
  // the optimizer may find out that a column is never null: state is the same with and without that
  private lazy val row = StructType(names.zip(inputs).map { case (name, e) => StructField(name, e.dataType) }).asNullable
  override lazy val dataType: ArrayType = ArrayType(row, containsNull = false)
  override def prettyName: String = "first_rows"

  private lazy val kept = AttributeReference("rows", dataType, nullable = false)()
  override lazy val aggBufferAttributes: Seq[AttributeReference] = Seq(kept)
  override lazy val initialValues: Seq[Literal] = Seq(Literal(new GenericArrayData(Array.empty[Any]), dataType))
  override lazy val updateExpressions: Seq[Expression] =
    Seq(WithRows(kept, CreateArray(Seq(CreateNamedStruct(names.zip(inputs).flatMap { case (name, e) =>
      Seq(Literal(name), e)
    }))), row, order, n))
  override lazy val mergeExpressions: Seq[Expression] = Seq(WithRows(kept.left, kept.right, row, order, n))
  // what was kept when more were asked for
  override lazy val evaluateExpression: Expression = Slice(kept, Literal(1), Literal(n))

  override protected def withNewChildrenInternal(made: IndexedSeq[Expression]): FirstRows = copy(inputs = made)
}

/** Rows that are in order, with others among them: the first `n` of all. */
case class WithRows(left: Expression, right: Expression, row: StructType, order: Seq[SortOrder], n: Int)
  extends Expression with BinaryLike[Expression] with CodegenFallback {
  override def nullable: Boolean = false
  override lazy val dataType: DataType = ArrayType(row, containsNull = false)
  @transient private lazy val ordering = GeneratedCode.unsharedSorting(order)
  @transient private lazy val project = GeneratedCode.unshared(row)

  override def eval(input: InternalRow): Any = {
    val more = right.eval(input).asInstanceOf[ArrayData]
    var kept = left.eval(input).asInstanceOf[ArrayData]
    (0 until more.numElements()).foreach(i => kept = withRow(kept, more.getStruct(i, row.length)))
    kept
  }

  private def withRow(kept: ArrayData, one: InternalRow): ArrayData = {
    val count = kept.numElements()
    def at(i: Int) = kept.getStruct(i, row.length)
    if (count >= n && ordering.compare(at(n - 1), one) <= 0) kept
    else {
      var (from, to) = (0, math.min(count, n))
      while (from < to) {
        val middle = (from + to) / 2
        if (ordering.compare(at(middle), one) <= 0) from = middle + 1 else to = middle
      }
      val made = new Array[Any](math.min(count + 1, n))
      made.indices.foreach { i =>
        made(i) =
          if (i == from) project(one).copy()
          else kept match {
            case own: KeptRows => own.array(if (i < from) i else i - 1)
            case other => project(other.getStruct(if (i < from) i else i - 1, row.length)).copy()
          }
      }
      new KeptRows(made)
    }
  }

  override protected def withNewChildrenInternal(newLeft: Expression, newRight: Expression): WithRows =
    copy(left = newLeft, right = newRight)
}

/** Rows of their own that never change: Spark copies a buffer with every row that it sees. */
private final class KeptRows(rows: Array[Any]) extends GenericArrayData(rows) {
  override def copy(): ArrayData = this
}
