/** Owns how rows get into a table of MySQL: by INSERT with many rows, through a temporary table if they
  * replace others.
  */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.UTF_8
import java.sql.SQLException

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.json.JsonBytes

/** The server says which statement fails, but not always at which row. InnoDB takes back a statement
  * that fails and keeps the transaction, so the row is searched by halves.
  */
private[headgate] final class MySqlLoad(sink: SinkPlan, timeZone: String, where: String) extends RowLoad {
  import MySqlLoad._

  private val table = sink.table
  private val text = new InsertText(table.columns, sink.struct, timeZone)
  private val staging =
    if (table.key.isEmpty) None else Some(new MySqlStaging(table, s"headgate_staged_${sink.number}"))
  private val into = staging.fold(
    s"INSERT INTO ${table.quoted} (${table.columns.map(c => MySqlDialect.quoted(c.name)).mkString(", ")}) VALUES ")(
    _.into)
  private val out = new JsonBytes(RowLoad.ChunkBytes + (RowLoad.ChunkBytes >> 2))
  /** Where in `out` each row begins. */
  private val starts = mutable.ArrayBuffer.empty[Int]
  private var sent = false

  override def add(row: InternalRow, place: Long, deletes: Boolean): Unit = {
    starts += out.length
    out.byte('(')
    if (staging.isDefined) {
      out.appendLong(place)
      out.byte(',')
      out.byte(if (deletes) '1' else '0')
      out.byte(',')
    }
    try text.write(row, out)
    catch {
      case unfit: UnfitValue => throw new JdbcFailure(JdbcFailure.Value, where,
        s"the column '${unfit.column}' cannot hold ${unfit.text}; the row with ${shown(row)}")
    }
    out.byte(')')
    out.byte(',')
  }

  override def size: Int = out.length

  override def clear(): Unit = {
    out.clear()
    starts.clear()
  }

  override def send(held: Held): Unit = {
    staging.filter(_ => !sent).foreach { s =>
      if (held.staging.add(s.create)) Sql.execute(held.connection, s.create)
      // of a batch before
      else Sql.execute(held.connection, s.empty)
    }
    sent = true
    val most = Sql.query(held.connection, "SELECT @@max_allowed_packet")(_.getLong(1)).head
    put(held, most)(0, starts.length)
  }

  /** Sends some of the rows that are gathered. */
  private def put(held: Held, most: Long)(from: Long, until: Long): Unit = {
    val values = textOf(from.toInt, until.toInt)
    if (into.length + values.length + PacketRoom > most) {
      if (until - from == 1) throw new JdbcFailure(JdbcFailure.Value, where,
        s"the row is larger than the server's max_allowed_packet ($most); the row with ${shownAt(from)}")
      halves(from, until)(put(held, most))
    } else bySteps(from, until, shownAt)((_, _) =>
      Sql.executeAsIs(held.connection, into + new String(values, UTF_8)))(put(held, most))
  }

  private def textOf(from: Int, until: Int): Array[Byte] = {
    val end = (if (until == starts.length) out.length else starts(until)) - 1
    java.util.Arrays.copyOfRange(out.array, starts(from), end)
  }

  override def finish(held: Held, rows: Long, deletes: Boolean): Unit = staging.foreach { s =>
    def bring(statement: (Long, Long) => String)(from: Long, until: Long): Unit =
      bySteps(from, until, s.shownAt(held, _))((a, b) => Sql.execute(held.connection, statement(a, b)))(bring(statement))
    if (deletes) bring(s.delete)(0, rows)
    bring(s.upsert)(0, rows)
  }

  /** Runs a statement for some rows; if one of them is refused, for fewer and fewer of them. */
  private def bySteps(from: Long, until: Long, row: Long => String)(
      statement: (Long, Long) => Unit)(fewer: (Long, Long) => Unit): Unit =
    try statement(from, until)
    catch {
      case error: SQLException if JdbcFailure.ofRow(MySqlDialect.kindOf(error)) =>
        if (until - from > 1) halves(from, until)(fewer)
        val which = if (until - from == 1) s"; the row with ${row(from)}" else ""
        throw new JdbcFailure(MySqlDialect.kindOf(error), where, MySqlDialect.said(error).text + which, error)
    }

  private def halves(from: Long, until: Long)(each: (Long, Long) => Unit): Unit = {
    val middle = (from + until) >>> 1
    each(from, middle)
    each(middle, until)
  }

  override def shown(row: InternalRow): String = ShownRow.of(table, text.shown(row))

  private def shownAt(number: Long): String = {
    val values = SqlValues.split(new String(textOf(number.toInt, number.toInt + 1), UTF_8).drop(1))
    ShownRow.of(table, if (staging.isEmpty) values else values.drop(2))
  }

  /** The row is found by sending fewer. */
  override def rowAt(place: String): Option[String] = None
}

private object MySqlLoad {
  /** What the protocol adds, and more. */
  private val PacketRoom = 1024
}
