/** Owns a group's part of a task: its transaction. */
package org.apache.spark.sql.headgate.sinks.jdbc

import scala.collection.mutable

import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.testing.Failpoints

/** Writes the rows of one task for all sinks of a group, in one transaction that begins at the first.
  *
  * 1. Take a connection. One that was kept may be broken: then another is made.
  * 2. For each sink that has rows, look whether this run may still write its table, and lock the task's
  *    marker: another attempt that lives on waits here, or is waited for.
  * 3. If the marker shows this batch, the rows are out: drop them. If it shows the batch's number with
  *    other offsets, or a later batch, the home is older than the table: fail.
  * 4. Else write them, then the markers, and commit. Whatever fails closes the connection.
  *
  * @param mark what the task leaves when its rows are out
  * @param retry whether an earlier attempt of this task in this batch was made
  */
private[headgate] final class GroupTask(plan: GroupPlan, task: Int, mark: Marker, retry: Boolean) {
  import mark.batch

  private val group = plan.group
  private val isOut = mutable.HashMap.empty[Int, Boolean]
  private val written = mutable.LinkedHashMap.empty[Int, Long]
  private var held: Held = _

  /** The table of a sink, for people. */
  def where(sink: SinkPlan): String = group.where(sink.options)

  /** Called before each row; false if the rows are out already, and not to be written. */
  def opened(sink: SinkPlan): Boolean = isOut.get(sink.number) match {
    case Some(out) => !out
    case None =>
      if (held == null) begin(sink)
      val out = attempt(sink)(_ => locked(sink))
      isOut(sink.number) = out
      !out
  }

  private def begin(sink: SinkPlan): Unit = {
    // outside of the connection: what fails here has begun nothing
    try {
      held = Connections.take(group.access) match {
        case (kept, false) if !kept.connection.isValid(GroupTask.ValidSeconds) =>
          Connections.discard(kept)
          Connections.make(group.access)
        case (usable, _) => usable
      }
    } catch { case error: Exception => fail(error, sink, _ => None) }
    reach(Failpoints.BeforeTransaction)
  }

  private def locked(sink: SinkPlan): Boolean = {
    val books = new Bookkeeping(held, group.job)
    books.writer(sink.table.name).foreach { case (owner, run) =>
      if (group.job.owner.isOther(Some(owner))) throw group.taken(sink, owner)
      if (run != group.job.runKey) throw new JdbcFailure(JdbcFailure.Fenced, where(sink),
        s"run $run of the job has begun since; this is ${group.job.runKey}")
    }
    books.lock(sink.name, task).exists(_.holds(mark, sink.name))
  }

  def wrote(sink: SinkPlan, rows: Long): Unit = written(sink.number) = rows

  /** Does something within the transaction.
    *
    * @param row the row that is to blame, by the server's words about its place
    */
  def attempt[T](sink: SinkPlan, row: String => Option[String] = _ => None)(body: Held => T): T =
    try body(held) catch { case error: Exception => fail(error, sink, row) }

  def commit(): Unit = if (held != null) {
    val last = plan.sinks.filter(s => written.contains(s.number)).lastOption
    last.fold(held.connection.rollback()) { sink => // without one, all that it has is locks
      attempt(sink) { held =>
        val books = new Bookkeeping(held, group.job)
        plan.sinks.foreach(s => written.get(s.number).foreach(books.write(s.name, task, mark, _)))
        reach(Failpoints.InTransaction)
        held.connection.commit()
      }
    }
    Connections.putBack(held)
    held = null
    if (last.isDefined) reach(Failpoints.AfterTransaction)
  }

  /** Never waits and never throws. */
  def abort(): Unit = if (held != null) {
    Connections.discard(held)
    held = null
  }

  private def fail(error: Exception, sink: SinkPlan, row: String => Option[String]): Nothing = {
    val shown = JdbcFailure.of(error, where(sink), group.access.dialect, row)
    abort()
    throw shown
  }

  private def reach(point: String): Unit = Failpoints.reachInTask(group.job.run, point, batch, retry)
}

private object GroupTask {
  private val ValidSeconds = 5
}
