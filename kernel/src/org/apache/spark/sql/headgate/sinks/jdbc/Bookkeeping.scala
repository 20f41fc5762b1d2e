/** Owns the two tables in which sinks note what is out, and whose the outputs are. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.UTF_8
import java.sql.{Connection, SQLException}

import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.{Marker, Owner}
import org.apache.spark.sql.headgate.sinks.core.JobSpec

/** `headgate_batches` has a row for each task of a run and sink: the last batch that is out, written in
  * the transaction of its rows. `headgate_outputs` has a row for each table that a job writes: the home
  * and the run that may do so. They are where the connection makes tables if nothing else is said.
  */
private[headgate] final class Bookkeeping(connection: Connection, job: JobSpec) {
  import Bookkeeping._

  def exist: Boolean = Sql.query(connection, "SELECT to_regclass(?) IS NOT NULL AND to_regclass(?) IS NOT NULL",
    Batches, Outputs)(_.getBoolean(1)).head

  /** Another job may do so at the same moment, and PostgreSQL then says that a name is taken. */
  def create(): Unit = if (!exist) {
    try {
      Definitions.foreach(Sql.execute(connection, _))
      connection.commit()
    } catch {
      case error: SQLException =>
        connection.rollback()
        if (!exist) throw error
    }
  }

  def owner(table: String): Option[Owner] = Sql.query(connection,
    s"SELECT owner, home FROM $Outputs WHERE job = ? AND output = ?", job.job, table)(
    r => Owner(r.getString(1), r.getString(2))).headOption

  /** Lets this run, and no other, write the table from now on; waits for transactions that do so. */
  def own(table: String): Unit = Sql.update(connection,
    s"""INSERT INTO $Outputs (job, output, owner, home, run) VALUES (?, ?, ?, ?, ?)
       |ON CONFLICT (job, output) DO UPDATE SET owner = EXCLUDED.owner, home = EXCLUDED.home,
       |run = EXCLUDED.run, since = now()""".stripMargin,
    job.job, table, job.owner.id, job.owner.home, job.runKey)

  /** Who may write the table at the moment, held so until the transaction ends. */
  def held(table: String): Option[(Owner, String)] = Sql.query(connection,
    s"SELECT owner, home, run FROM $Outputs WHERE job = ? AND output = ? FOR SHARE", job.job, table)(
    r => (Owner(r.getString(1), r.getString(2)), r.getString(3))).headOption

  /** The batch of a task that is out, if there is one. Nobody else can write the task's next batch, or
    * learn whether it is out, before this transaction has ended.
    */
  def lock(sink: String, task: Int): Option[Marker] = {
    val found = locked(sink, task).orElse {
      Sql.update(connection, s"""INSERT INTO $Batches (job, sink, run, task, batch, marker, rows)
        |VALUES (?, ?, ?, ?, -1, '', 0) ON CONFLICT DO NOTHING""".stripMargin,
        job.job, sink, job.runKey, task)
      locked(sink, task)
    }
    found.filter(_.batch >= 0)
  }

  private def locked(sink: String, task: Int): Option[Marker] = Sql.query(connection,
    s"""SELECT batch, marker FROM $Batches WHERE job = ? AND sink = ? AND run = ? AND task = ?
       |FOR UPDATE""".stripMargin, job.job, sink, job.runKey, task)(
    r => Marker.of(r.getLong(1), r.getString(2))).headOption

  def write(sink: String, task: Int, mark: Marker, rows: Long): Unit = {
    val json = mark.writeTo(JsonNodeFactory.instance.objectNode().put("version", 1), PositionBytes)
    Sql.update(connection, s"""UPDATE $Batches SET batch = ?, fingerprint = ?, marker = ?, rows = ?,
      |written = now() WHERE job = ? AND sink = ? AND run = ? AND task = ?""".stripMargin,
      mark.batch, mark.fingerprint, json.toString, rows, job.job, sink, job.runKey, task)
  }

  /** Of this run, by sink. */
  def markers: Map[String, Seq[Marker]] = Sql.query(connection,
    s"SELECT sink, marker FROM $Batches WHERE job = ? AND run = ? AND batch >= 0", job.job, job.runKey)(
    r => r.getString(1) -> Marker.parse(r.getString(2).getBytes(UTF_8))).groupMap(_._1)(_._2)

  /** Ends the transactions of this home's job under other names than `name`: their tasks are nobody's.
    *
    * One of another user is left alone; then whoever needs what it has locked waits for it.
    */
  def fence(prefix: String, name: String): Unit = Sql.query(connection,
    """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      |WHERE usename = current_user AND starts_with(application_name, ?) AND application_name <> ?
      |AND pid <> pg_backend_pid()""".stripMargin, prefix, name)(_.getLong(1))
}

private[headgate] object Bookkeeping {
  val Batches = "headgate_batches"
  val Outputs = "headgate_outputs"

  /** Each task writes one: with the offsets of very many partitions they would be repeated too often. */
  private val PositionBytes = 16 << 10

  val Definitions: Seq[String] = Seq(
    s"""CREATE TABLE IF NOT EXISTS $Batches (
       |  job text, sink text, run text, task integer, batch bigint NOT NULL, fingerprint text,
       |  marker text NOT NULL, rows bigint NOT NULL, written timestamptz NOT NULL DEFAULT now(),
       |  PRIMARY KEY (job, sink, run, task))""".stripMargin,
    s"""CREATE TABLE IF NOT EXISTS $Outputs (
       |  job text, output text, owner text NOT NULL, home text NOT NULL, run text NOT NULL,
       |  since timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (job, output))""".stripMargin)
}
