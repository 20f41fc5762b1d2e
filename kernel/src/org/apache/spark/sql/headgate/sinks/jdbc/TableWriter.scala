/** Owns a sink's part of a task: rows into a table, in the task's transaction. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.json.JsonBytes
import org.apache.spark.sql.headgate.sinks.core.{RecordParts, SinkWriter}

/** Rows are gathered, and copied when there are enough of them: with what was copied at hand, a row that
  * the database refuses can be shown.
  */
private[headgate] final class TableWriter(task: GroupTask, sink: SinkPlan, timeZone: String) extends SinkWriter {
  import TableWriter._

  private val text = new CopyText(sink.table.columns, sink.struct, timeZone)
  private val deleted = sink.options.hidden.indexOf(RecordParts.Deleted)
  private val staging =
    if (sink.options.key.isEmpty) None else Some(new Staging(sink.table, s"headgate_staged_${sink.number}"))
  private val keyFields = sink.table.columns.filter(c => sink.table.key.contains(c.name))
  private val copy = staging.fold(
    s"COPY ${sink.table.quoted} (${sink.table.columns.map(c => Sql.quoted(c.name)).mkString(", ")}) FROM STDIN")(
    _.copy)
  private val out = new JsonBytes(ChunkBytes + (ChunkBytes >> 2))
  private var rows = 0L
  private var deletes = false

  override def write(row: InternalRow): Unit = if (task.opened(sink)) {
    staging.foreach(_ => place(row))
    text.write(row, out)
    out.byte('\n')
    rows += 1
    if (out.length >= ChunkBytes) flush()
  }

  private def place(row: InternalRow): Unit = {
    keyFields.find(k => row.isNullAt(k.field)).foreach { k =>
      val line = new JsonBytes(256)
      text.write(row, line)
      throw new JdbcFailure(JdbcFailure.Constraint, task.where(sink), s"the key column '${k.name}' must have " +
        s"a value in the row with ${shown(new String(line.array, 0, line.length, UTF_8))}; leave out such rows")
    }
    val deletes = deleted >= 0 && row.getBoolean(deleted)
    this.deletes |= deletes
    out.appendLong(rows)
    out.byte('\t')
    out.byte(if (deletes) 't' else 'f')
    out.byte('\t')
  }

  private def flush(): Unit = if (out.length > 0) {
    task.attempt(sink, rowOf) { held =>
      staging.filter(_ => held.staging.add(copy)).foreach(s => Sql.execute(held.connection, s.create))
      val into = held.postgres.getCopyAPI.copyIn(copy)
      into.writeToCopy(out.array, 0, out.length)
      into.endCopy()
    }
    out.clear()
  }

  override def finish(): Unit = if (rows > 0) {
    flush()
    for (s <- staging) task.attempt(sink) { held =>
      if (deletes) Sql.execute(held.connection, s.delete)
      Sql.execute(held.connection, s.upsert)
    }
    task.wrote(sink, rows)
  }

  override def abort(): Unit = ()

  /** The row that the server means with `COPY orders, line 17, column price: "x"`. */
  private def rowOf(context: String): Option[String] =
    Line.findFirstMatchIn(context).map(_.group(1).toInt).flatMap { number =>
      // not by Java's lines: a carriage return is escaped, but other breaks are not
      new String(out.array, 0, out.length, UTF_8).split('\n').lift(number - 1)
    }.map(line => shown(if (staging.isEmpty) line else line.split("\t", 3)(2)))

  /** The key first, then how the row begins. */
  private def shown(line: String): String = {
    val values = sink.table.columns.map(_.name).zip(line.split("\t", -1))
    val (key, others) = values.partition(v => sink.table.key.contains(v._1))
    val all = (key ++ others).map { case (name, value) => s"$name=${value.take(MostOfValue)}" }.mkString(", ")
    if (all.length <= MostOfRow) all else all.take(MostOfRow - 3) + "..."
  }
}

private object TableWriter {
  private val ChunkBytes = 1 << 20
  private val MostOfValue = 40
  private val MostOfRow = 130
  private val Line = """COPY \S+, line (\d+)""".r
}
