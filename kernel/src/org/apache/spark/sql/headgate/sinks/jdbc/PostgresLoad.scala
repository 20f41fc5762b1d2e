/** Owns how rows get into a table of PostgreSQL: by COPY, in chunks of lines. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.UTF_8

import org.postgresql.PGConnection

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.json.JsonBytes

private[headgate] final class PostgresLoad(sink: SinkPlan, timeZone: String) extends RowLoad {
  import PostgresLoad._

  private val table = sink.table
  private val text = new CopyText(table.columns, sink.struct, timeZone)
  private val staging =
    if (table.key.isEmpty) None else Some(new PostgresStaging(table, s"headgate_staged_${sink.number}"))
  private val copy = staging.fold(
    s"COPY ${table.quoted} (${table.columns.map(c => PostgresDialect.quoted(c.name)).mkString(", ")}) FROM STDIN")(
    _.copy)
  private val out = new JsonBytes(RowLoad.ChunkBytes + (RowLoad.ChunkBytes >> 2))

  override def add(row: InternalRow, place: Long, deletes: Boolean): Unit = {
    if (staging.isDefined) {
      out.appendLong(place)
      out.byte('\t')
      out.byte(if (deletes) 't' else 'f')
      out.byte('\t')
    }
    text.write(row, out)
    out.byte('\n')
  }

  override def size: Int = out.length

  override def send(held: Held): Unit = {
    staging.filter(_ => held.staging.add(copy)).foreach(s => Sql.execute(held.connection, s.create))
    val into = held.connection.unwrap(classOf[PGConnection]).getCopyAPI.copyIn(copy)
    into.writeToCopy(out.array, 0, out.length)
    into.endCopy()
  }

  override def clear(): Unit = out.clear()

  override def finish(held: Held, rows: Long, deletes: Boolean): Unit = staging.foreach { s =>
    if (deletes) Sql.execute(held.connection, s.delete)
    Sql.execute(held.connection, s.upsert)
  }

  /** The row that the server means with `COPY orders, line 17, column price: "x"`. */
  override def rowAt(place: String): Option[String] =
    Line.findFirstMatchIn(place).map(_.group(1).toInt).flatMap { number =>
      // not by Java's lines: a carriage return is escaped, but other breaks are not
      new String(out.array, 0, out.length, UTF_8).split('\n').lift(number - 1)
    }.map(line => shown(if (staging.isEmpty) line else line.split("\t", 3)(2)))

  override def shown(row: InternalRow): String = {
    val line = new JsonBytes(256)
    text.write(row, line)
    shown(new String(line.array, 0, line.length, UTF_8))
  }

  private def shown(line: String): String = ShownRow.of(table, line.split("\t", -1).toSeq)
}

private object PostgresLoad {
  private val Line = """COPY \S+, line (\d+)""".r
}
