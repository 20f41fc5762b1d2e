package org.apache.spark.sql.headgate.steps.join

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._

/** The rows that a join gives: place, event time, number of the output, left row, right row. */
private[join] final class JoinOutput(rows: Seq[DataType], partition: Int) {
  private val project = GeneratedCode.projection(
    Array[DataType](LongType, TimestampType, ByteType, rows.head, rows(1)))
  private val values = new GenericInternalRow(5)
  private var count = 0L

  private def row(output: Byte, time: Option[Long]): InternalRow = {
    // the order in which a replayed batch gives its rows again
    values.setLong(0, (partition.toLong << 40) | count)
    count += 1
    values.update(1, time.orNull)
    values.setByte(2, output)
    project(values)
  }

  /** Good until the next one, as are all. */
  def pair(left: UnsafeRow, right: UnsafeRow, time: Long): InternalRow = {
    values.update(3, left)
    values.update(4, right)
    row(JoinOutput.Main, Some(time))
  }

  def side(output: Byte, side: Int, own: UnsafeRow, time: Option[Long]): InternalRow = {
    values.update(3 + side, own)
    values.update(4 - side, null)
    row(output, time)
  }
}

private[join] object JoinOutput {
  val Main: Byte = 0
  val UnmatchedLeft: Byte = 1
  val UnmatchedRight: Byte = 2
  val Late: Byte = 3
}
