/** Owns PostgreSQL: its connections, its catalog, its statements, its codes of errors. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.sql.{Connection, SQLException}

import scala.util.control.NonFatal

import org.postgresql.{Driver, PGProperty}
import org.postgresql.util.PSQLException

import org.apache.spark.sql.headgate.brokers.core.BrokerFailure

private[headgate] object PostgresDialect extends Dialect {

  /** Nothing may hang for ever where nobody sees it: an answer in ten minutes, a lock in half of one. */
  private val Defaults = Map(
    PGProperty.SOCKET_TIMEOUT.getName -> "600",
    PGProperty.CONNECT_TIMEOUT.getName -> "10",
    PGProperty.TCP_KEEP_ALIVE.getName -> "true")
  private val LockTimeout = "lock_timeout"
  private val LockTimeoutMs = 30000

  override def product: String = "PostgreSQL"

  override def quoted(name: String): String = "\"" + name.replace("\"", "\"\"") + "\""

  override def connect(access: Access): Connection = {
    val properties = access.properties(Defaults)
    properties.put(PGProperty.APPLICATION_NAME.getName, access.name)
    val connection = new Driver().connect(access.url, properties)
    if (connection == null) {
      throw new IllegalArgumentException(s"the PostgreSQL driver does not take ${access.shown}")
    }
    try {
      // markers are locked, and who waited for one must see what the other has written
      connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED)
      if (!access.options.getOrElse("options", "").contains(LockTimeout)) {
        Sql.execute(connection, s"SET $LockTimeout = $LockTimeoutMs")
      }
      connection.setAutoCommit(false)
      connection
    } catch { case NonFatal(error) => connection.close(); throw error }
  }

  override def fence(connection: Connection, prefix: String, name: String): Unit = Sql.query(connection,
    """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      |WHERE usename = current_user AND starts_with(application_name, ?) AND application_name <> ?
      |AND pid <> pg_backend_pid()""".stripMargin, prefix, name)(_.getLong(1))

  override def notes: NoteStatements = PostgresNotes
  override def catalog: Catalog = PostgresCatalog
  override def types: ColumnTypes = PostgresTypes

  override def load(sink: SinkPlan, timeZone: String, where: String): RowLoad =
    new PostgresLoad(sink, timeZone)

  // https://www.postgresql.org/docs/current/errcodes-appendix.html
  override def kindOf(error: SQLException): String = Option(error.getSQLState).getOrElse("") match {
    case "57P01" | "57P02" | "57P03" => JdbcFailure.Unreachable // it is shutting down, or starting
    case "53300" => JdbcFailure.Other // too many connections: one may become free
    case "42501" | "3D000" | "08004" => JdbcFailure.Denied // 08004: no password was given
    case "42P01" | "3F000" => JdbcFailure.TableMissing
    case "42703" | "42804" | "42P10" | "428C9" => JdbcFailure.TableUnfit
    case state => JdbcFailure.kindOfClass(state)
  }

  override def said(error: SQLException): ServerWords = {
    val server = BrokerFailure.causes(error).collectFirst {
      case e: PSQLException if e.getServerErrorMessage != null => e.getServerErrorMessage
    }
    ServerWords(server.flatMap(s => Option(s.getMessage)).getOrElse(BrokerFailure.said(error)),
      server.flatMap(s => Option(s.getWhere)), server.flatMap(s => Option(s.getDetail)))
  }
}

private[headgate] object PostgresNotes extends NoteStatements {
  import Bookkeeping.{Batches, Outputs}

  override val exist: String = "SELECT to_regclass(?) IS NOT NULL AND to_regclass(?) IS NOT NULL"

  override val definitions: Seq[String] = Seq(
    s"""CREATE TABLE IF NOT EXISTS $Batches (
       |  job text, sink text, run text, task integer, batch bigint NOT NULL, fingerprint text,
       |  marker text NOT NULL, rows bigint NOT NULL, written timestamptz NOT NULL DEFAULT now(),
       |  PRIMARY KEY (job, sink, run, task))""".stripMargin,
    s"""CREATE TABLE IF NOT EXISTS $Outputs (
       |  job text, output text, owner text NOT NULL, home text NOT NULL, run text NOT NULL,
       |  since timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (job, output))""".stripMargin)

  override val own: String =
    s"""INSERT INTO $Outputs (job, output, owner, home, run) VALUES (?, ?, ?, ?, ?)
       |ON CONFLICT (job, output) DO UPDATE SET owner = EXCLUDED.owner, home = EXCLUDED.home,
       |run = EXCLUDED.run, since = now()""".stripMargin

  override val begin: String =
    s"""INSERT INTO $Batches (job, sink, run, task, batch, marker, rows)
       |VALUES (?, ?, ?, ?, -1, '', 0) ON CONFLICT DO NOTHING""".stripMargin

  override def share: String = "FOR SHARE"
  override def rows: String = "rows"
  override def now: String = "now()"
}

private[headgate] object PostgresCatalog extends Catalog {
  private def quoted(table: String) = PostgresDialect.quotedTable(table)

  override def found(connection: Connection, table: String): Option[String] = Sql.query(connection,
    """SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      |WHERE c.oid = to_regclass(?)""".stripMargin, quoted(table))(
    r => s"${r.getString(1)}.${r.getString(2)}").headOption

  override def columns(connection: Connection, table: String): Seq[TableColumn] = Sql.query(connection,
    """SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.typname, e.typname,
      |  a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', a.attgenerated <> ''
      |FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
      |JOIN pg_type b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
      |LEFT JOIN pg_type e ON e.oid = b.typelem AND b.typcategory = 'A'
      |WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped""".stripMargin,
    quoted(table)) { r =>
    TableColumn(r.getString(1), r.getString(2), r.getString(3), Option(r.getString(4)), r.getBoolean(5),
      r.getBoolean(6))
  }

  /** Those that ON CONFLICT can go by. */
  override def uniqueKeys(connection: Connection, table: String): Map[String, Set[String]] = Sql.query(connection,
    """SELECT i.indexrelid::text, a.attname FROM pg_index i
      |JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts - 1])
      |WHERE i.indrelid = to_regclass(?) AND i.indisunique AND i.indisvalid AND i.indimmediate
      |AND i.indpred IS NULL AND i.indexprs IS NULL""".stripMargin, quoted(table))(
    r => r.getString(1) -> r.getString(2)).groupMap(_._1)(_._2).view.mapValues(_.toSet).toMap

  override def problem(
      connection: Connection, table: String, written: Seq[String], key: Seq[String]): Option[String] = None

  override def tableOptions(connection: Connection): String = ""
}
