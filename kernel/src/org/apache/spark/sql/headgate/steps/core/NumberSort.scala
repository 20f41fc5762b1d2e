/** Owns the rows of a task in the order of a number. */
package org.apache.spark.sql.headgate.steps.core

import scala.collection.mutable

import org.apache.spark.SparkEnv
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, UnsafeRow}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution.UnsafeExternalRowSorter
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators

/**
 * Few rows are sorted in an array. Spark's sorter, which spills, first allocates a page of many megabytes
 * and generates code: more work than a small batch has otherwise.
 */
object NumberSort {
  private val FewRows = 1000
  private val FewBytes = 1L << 20

  /** @param at which column is the number; rows of the same number stay in the order in which they came */
  def apply(columns: Seq[Attribute], at: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val few = mutable.ArrayBuffer.empty[UnsafeRow]
    var bytes = 0L
    while (rows.hasNext && few.length < FewRows && bytes < FewBytes) {
      val row = rows.next().asInstanceOf[UnsafeRow].copy()
      bytes += row.getSizeInBytes
      few += row
    }
    if (rows.hasNext) many(columns, at, few.iterator ++ rows) else few.sortBy(_.getLong(at)).iterator
  }

  private def many(columns: Seq[Attribute], at: Int, rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    val sorter = UnsafeExternalRowSorter.createWithRecordComparator(DataTypeUtils.fromAttributes(columns),
      () => KeySort.Alike, PrefixComparators.LONG, new KeySort.Prefixes(_.getLong(at)),
      SparkEnv.get.memoryManager.pageSizeBytes, true)
    rows.foreach(row => sorter.insertRow(row.asInstanceOf[UnsafeRow]))
    sorter.sort()
  }
}
