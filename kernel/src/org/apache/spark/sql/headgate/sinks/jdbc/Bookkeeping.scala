/** Owns the two tables in which sinks note what is out, and whose the outputs are. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.UTF_8
import java.sql.SQLException

import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.{Marker, Owner}
import org.apache.spark.sql.headgate.sinks.core.JobSpec

/** `headgate_batches` has a row for each task of a run and sink: the last batch that is out, written in
  * the transaction of its rows. `headgate_outputs` has a row for each table that a job writes: the home
  * and the run that may do so. They are where the connection makes tables if nothing else is said.
  */
private[headgate] final class Bookkeeping(held: Held, job: JobSpec) {
  import Bookkeeping._

  private val connection = held.connection
  private val dialect = held.access.dialect
  private val notes = dialect.notes

  def exist: Boolean = Sql.query(connection, notes.exist, Batches, Outputs)(_.getBoolean(1)).head

  /** Another job may do so at the same moment, and the database then says that a name is taken. */
  def create(): Unit = if (!exist) {
    try {
      notes.definitions.foreach(Sql.execute(connection, _))
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
  def own(table: String): Unit = Sql.update(connection, notes.own,
    job.job, table, job.owner.id, job.owner.home, job.runKey)

  /** Who may write the table at the moment, held so until the transaction ends. */
  def writer(table: String): Option[(Owner, String)] = Sql.query(connection,
    s"SELECT owner, home, run FROM $Outputs WHERE job = ? AND output = ? ${notes.share}", job.job, table)(
    r => (Owner(r.getString(1), r.getString(2)), r.getString(3))).headOption

  /** The batch of a task that is out, if there is one. Nobody else can write the task's next batch, or
    * learn whether it is out, before this transaction has ended.
    */
  def lock(sink: String, task: Int): Option[Marker] = {
    val found = locked(sink, task).orElse {
      Sql.update(connection, notes.begin, job.job, sink, job.runKey, task)
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
    Sql.update(connection, s"""UPDATE $Batches SET batch = ?, fingerprint = ?, marker = ?,
      |${notes.rows} = ?, written = ${notes.now} WHERE job = ? AND sink = ? AND run = ? AND task = ?""".stripMargin,
      mark.batch, mark.fingerprint, json.toString, rows, job.job, sink, job.runKey, task)
  }

  /** Of this run, by sink. */
  def markers: Map[String, Seq[Marker]] = Sql.query(connection,
    s"SELECT sink, marker FROM $Batches WHERE job = ? AND run = ? AND batch >= 0", job.job, job.runKey)(
    r => r.getString(1) -> Marker.parse(r.getString(2).getBytes(UTF_8))).groupMap(_._1)(_._2)

  def fence(prefix: String, name: String): Unit = dialect.fence(connection, prefix, name)
}

private[headgate] object Bookkeeping {
  val Batches = "headgate_batches"
  val Outputs = "headgate_outputs"

  /** Each task writes one: with the offsets of very many partitions they would be repeated too often. */
  private val PositionBytes = 16 << 10
}

/** The statements about the notes that differ between databases. */
private[headgate] trait NoteStatements {

  /** Whether both of the tables are there that are given. */
  def exist: String

  def definitions: Seq[String]

  /** Of job, output, owner, home and run. */
  def own: String

  /** Makes the row of job, sink, run and task, if it is missing. */
  def begin: String

  /** Ends a query that lets nobody change its rows before the transaction ends. */
  def share: String

  /** The name of the column with the count of rows. */
  def rows: String

  def now: String
}
