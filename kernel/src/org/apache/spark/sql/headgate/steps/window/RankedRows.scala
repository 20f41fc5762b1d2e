package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._

/** The rows of a window whose only result is an array of rows: each of these, with its rank. */
final class RankedRows(plan: WindowPlan) {
  private val keys = plan.keys.length
  private val rowsAt = keys + 2 // behind the window's times
  private val ArrayType(row: StructType, _) = plan.results.head.dataType: @unchecked
  private val known = plan.keys.map(_.dataType) ++ Seq[DataType](TimestampType, TimestampType, plan.results.head.dataType,
    BooleanType, StringType, IntegerType, TimestampType) ++ plan.lateRow
  private def column(i: Int) = BoundReference(i, known(i), nullable = true)
  private val inRow = known.length + 1
  private val shown = plan.shown.map(i => BoundReference(inRow + i, row(i).dataType, nullable = true))
  private val project = GeneratedCode.projection((0 until rowsAt).map(column) ++
    Seq(BoundReference(known.length, IntegerType, nullable = false)) ++ shown ++ (rowsAt + 4 until known.length).map(column))
  private val rank = new GenericInternalRow(1)
  private val withRank = new JoinedRow
  private val withRow = new JoinedRow

  /** @param window keys, times, the rows, what is known of the pane, event time, and a late row: all but the rows leave */
  def of(window: InternalRow): Iterator[InternalRow] = {
    val own = window.copy()
    val rows = own.getArray(rowsAt)
    (0 until rows.numElements()).iterator.map { i =>
      rank.setInt(0, i + 1)
      project(withRow(withRank(own, rank), rows.getStruct(i, row.length)))
    }
  }
}
