/** Owns what becomes of the windows of keys that were several and, in normal form, are one. */
package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.headgate.spark.StateStore
import org.apache.spark.sql.headgate.store.{KeyMerge, StoredRow, StoreSpec}

/** Windows: the buffers of the same window are merged, as if all its rows had had one key. */
case class MergeWindows(functions: Seq[AggregateExpression], session: Boolean) extends KeyMerge {
  override protected def put(specs: Seq[StoreSpec], stores: Array[StateStore], rows: Iterator[StoredRow]): Unit = {
    val normal = new KeyMerge.Normal(specs)
    val windows = new MergedWindows(specs, stores, new Buffers(functions, session), session)
    rows.foreach { row =>
      normal.see(row)
      windows.put(row.store, normal.key, normal.value, normal.changed)
    }
    windows.end()
  }
}
