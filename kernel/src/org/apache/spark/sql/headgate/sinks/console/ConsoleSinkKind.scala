/** Owns sinks that print the first rows of each batch; at least once, since nothing remembers them. */
package org.apache.spark.sql.headgate.sinks.console

import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.sinks.core._
import org.apache.spark.sql.types.StructType

final class ConsoleSinkKind extends SinkKind {
  override def name: String = "console"
  override def options(spec: SpecNode): SinkOptions = ConsoleSinkOptions
  override def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks = ConsoleSinks
}

private object ConsoleSinkOptions extends SinkOptions

/** The first rows that a task has. */
private[console] case class Shown(rows: Long, lines: Seq[String]) extends SinkMessage

private object ConsoleSinks extends JobSinks {
  override def prepare(batch: BatchWrite): TaskPlan = ConsolePlan(batch.structs, batch.timeZone)

  override def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit = {
    val shown = messages.collect { case s: Shown => s }
    if (shown.nonEmpty) {
      val rows = shown.map(_.rows).sum
      val lines = shown.flatMap(_.lines).take(ConsoleWriter.Rows)
      val more = if (rows > lines.length) s", the first ${lines.length}" else ""
      val noun = if (rows == 1) "row" else "rows"
      val head = s"-- ${sink.name}, batch ${mark.batch}: $rows $noun$more"
      System.out.println((head +: lines).mkString(System.lineSeparator))
      System.out.flush()
    }
  }

  override def markers(): Map[Int, Seq[Marker]] = Map.empty
}

private case class ConsolePlan(structs: Seq[StructType], timeZone: String) extends TaskPlan {
  override def open(task: TaskPlace): TaskSinks =
    (sink: Int) => new ConsoleWriter(structs(sink), timeZone)
}
