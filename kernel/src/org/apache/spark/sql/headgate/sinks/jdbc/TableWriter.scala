/** Owns a sink's part of a task: rows into a table, in the task's transaction. */
package org.apache.spark.sql.headgate.sinks.jdbc

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.sinks.core.{RecordParts, SinkWriter}

/** Rows are gathered, and sent when there are enough of them: with what was sent at hand, a row that
  * the database refuses can be shown.
  */
private[headgate] final class TableWriter(task: GroupTask, sink: SinkPlan, timeZone: String) extends SinkWriter {
  private val load = sink.table.dialect.load(sink, timeZone, task.where(sink))
  private val deleted = sink.options.hidden.indexOf(RecordParts.Deleted)
  private val keyFields = sink.table.columns.filter(c => sink.table.key.contains(c.name))
  private var rows = 0L
  private var deletes = false

  override def write(row: InternalRow): Unit = if (task.opened(sink)) {
    needKey(row)
    val deletes = deleted >= 0 && row.getBoolean(deleted)
    this.deletes |= deletes
    load.add(row, rows, deletes)
    rows += 1
    if (load.size >= RowLoad.ChunkBytes) flush()
  }

  private def needKey(row: InternalRow): Unit = keyFields.find(k => row.isNullAt(k.field)).foreach { k =>
    throw new JdbcFailure(JdbcFailure.Constraint, task.where(sink), s"the key column '${k.name}' must have " +
      s"a value in the row with ${load.shown(row)}; leave out such rows")
  }

  private def flush(): Unit = if (load.size > 0) {
    task.attempt(sink, load.rowAt)(load.send)
    load.clear()
  }

  override def finish(): Unit = if (rows > 0) {
    flush()
    task.attempt(sink)(load.finish(_, rows, deletes))
    task.wrote(sink, rows)
  }

  override def abort(): Unit = ()
}
