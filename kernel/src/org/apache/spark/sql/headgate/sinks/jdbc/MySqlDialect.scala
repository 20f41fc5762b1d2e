/** Owns MySQL and MariaDB: their connections, their notes, their codes of errors. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.sql.{Connection, SQLException}
import java.util.concurrent.ThreadLocalRandom

import scala.util.control.NonFatal

import org.mariadb.jdbc.Driver

import org.apache.spark.sql.headgate.brokers.core.BrokerFailure

private[headgate] object MySqlDialect extends Dialect {

  /** Nothing may hang for ever where nobody sees it: an answer in ten minutes, a lock in half of one. */
  private val Defaults = Map("socketTimeout" -> "600000", "connectTimeout" -> "10000", "tcpKeepAlive" -> "true")
  private val LockTimeouts = Seq("innodb_lock_wait_timeout", "lock_wait_timeout")
  private val LockTimeoutSeconds = 30

  /** Values are refused and not changed, texts have backslashes, and an id of 0 is one. */
  private val Session = "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'" +
    ", time_zone = '+00:00'"

  /** So many connections of a job there may be. */
  private val Slots = 1024

  override def product: String = "MySQL"

  override def quoted(name: String): String = "`" + name.replace("`", "``") + "`"

  override def connect(access: Access): Connection = {
    // one driver for both: it takes addresses of MySQL only if they say so
    val address = access.url.replaceFirst("^jdbc:mysql:", "jdbc:mariadb:")
    val connection = new Driver().connect(address, access.properties(Defaults))
    if (connection == null) {
      throw new IllegalArgumentException(s"the MariaDB driver does not take ${access.shown}")
    }
    try {
      val asked = access.options.getOrElse("sessionVariables", "") + access.url
      val locks = LockTimeouts.filterNot(asked.contains).map(name => s", $name = $LockTimeoutSeconds")
      Sql.execute(connection, s"SET SESSION $Session${locks.mkString}")
      // markers are locked, and who waited for one must see what the other has written
      connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED)
      signOn(connection, access.name)
      connection.setAutoCommit(false)
      connection
    } catch { case NonFatal(error) => connection.close(); throw error }
  }

  /** The server shows no names of connections, but who holds a lock with a name: each connection of a job
    * holds one of them until it ends.
    */
  private def signOn(connection: Connection, name: String): Unit = for (job <- jobOf(name)) {
    val first = ThreadLocalRandom.current().nextInt(Slots)
    val free = Iterator.range(first, first + Slots).map(_ % Slots).exists { slot =>
      Sql.query(connection, "SELECT GET_LOCK(?, 0)", s"$job.$slot")(_.getInt(1)).head == 1
    }
    if (!free) throw new SQLException(s"the job has $Slots connections already")
  }

  /** The part of a connection's name that stays from start to start. */
  private def jobOf(name: String): Option[String] =
    Option(name.split('.')).filter(_.length > 1).map(_.take(2).mkString("."))

  /** A start has no connections yet when it asks for this, so all others than this one are ended. */
  override def fence(connection: Connection, prefix: String, name: String): Unit = for (job <- jobOf(name)) {
    val holders = (0 until Slots).map(slot => s"IS_USED_LOCK('$job.$slot')").mkString(", ")
    val (own, others) = Sql.query(connection, s"SELECT CONNECTION_ID(), $holders")(r =>
      r.getLong(1) -> (2 to Slots + 1).map(r.getLong).filter(_ > 0)).head
    others.filter(_ != own).foreach { id =>
      try Sql.execute(connection, s"KILL $id")
      catch { case error: SQLException if NotKilled(error.getErrorCode) => () }
    }
  }

  /** It is gone, or another user's. */
  private val NotKilled = Set(1094, 1095)

  override def notes: NoteStatements = MySqlNotes
  override def catalog: Catalog = MySqlCatalog
  override def types: ColumnTypes = MySqlTypes

  override def load(sink: SinkPlan, timeZone: String, where: String): RowLoad =
    new MySqlLoad(sink, timeZone, where)

  // https://dev.mysql.com/doc/mysql-errors/8.0/en/server-error-reference.html
  override def kindOf(error: SQLException): String = error.getErrorCode match {
    case 1053 | 1077 | 1317 | 1927 => JdbcFailure.Unreachable // it is shutting down, or has ended the connection
    case 1040 | 1203 | 1226 => JdbcFailure.Other // too many connections: one may become free
    case 1044 | 1045 | 1046 | 1049 | 1142 | 1143 | 1227 | 1251 | 1370 | 1698 => JdbcFailure.Denied
    case 1146 => JdbcFailure.TableMissing
    case 1054 | 1060 | 1071 | 1364 => JdbcFailure.TableUnfit
    case 1048 | 1062 | 1216 | 1217 | 1451 | 1452 | 1557 | 1586 | 1761 | 1762 | 3819 | 4025 =>
      JdbcFailure.Constraint
    case 1118 | 1153 | 1264 | 1265 | 1292 | 1366 | 1406 | 1411 | 3140 | 3156 => JdbcFailure.Value
    case _ => JdbcFailure.kindOfClass(Option(error.getSQLState).getOrElse(""))
  }

  /** Without the number of the connection, which the driver writes before the server's words. */
  override def said(error: SQLException): ServerWords =
    ServerWords(BrokerFailure.said(error).replaceFirst("^\\(conn=-?\\d+\\) ", ""), None, None)
}

private[headgate] object MySqlNotes extends NoteStatements {
  import Bookkeeping.{Batches, Outputs}

  override val exist: String =
    """SELECT count(*) = 2 FROM information_schema.tables
      |WHERE table_schema = DATABASE() AND table_name IN (?, ?)""".stripMargin

  private val options = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"

  override val definitions: Seq[String] = Seq(
    s"""CREATE TABLE IF NOT EXISTS $Batches (
       |  job varchar(255), sink varchar(255), run varchar(190), task int, batch bigint NOT NULL,
       |  fingerprint text, marker longtext NOT NULL, `rows` bigint NOT NULL,
       |  written datetime(6) NOT NULL DEFAULT current_timestamp(6),
       |  PRIMARY KEY (job, sink, run, task)) $options""".stripMargin,
    s"""CREATE TABLE IF NOT EXISTS $Outputs (
       |  job varchar(255), output varchar(255), owner text NOT NULL, home text NOT NULL,
       |  run text NOT NULL, since datetime(6) NOT NULL DEFAULT current_timestamp(6),
       |  PRIMARY KEY (job, output)) $options""".stripMargin)

  /** Each value is given once, whatever the server calls the row that comes. */
  override val own: String =
    s"""INSERT INTO $Outputs (job, output, owner, home, run)
       |SELECT n.job, n.output, n.owner, n.home, n.run
       |FROM (SELECT ? AS job, ? AS output, ? AS owner, ? AS home, ? AS run) n
       |ON DUPLICATE KEY UPDATE owner = n.owner, home = n.home, run = n.run, since = now(6)""".stripMargin

  override val begin: String =
    s"""INSERT INTO $Batches (job, sink, run, task, batch, marker, `rows`)
       |VALUES (?, ?, ?, ?, -1, '', 0) ON DUPLICATE KEY UPDATE batch = batch""".stripMargin

  override def share: String = "LOCK IN SHARE MODE"
  override def rows: String = "`rows`"
  override def now: String = "now(6)"
}
