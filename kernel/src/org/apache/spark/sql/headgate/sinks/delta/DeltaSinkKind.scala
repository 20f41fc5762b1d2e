/** Owns sinks that write Delta tables, exactly once by Delta's own transactions. */
package org.apache.spark.sql.headgate.sinks.delta

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.spark.sql.headgate.commit.{HomeFiles, Marker}
import org.apache.spark.sql.headgate.sinks.core._
import org.apache.spark.sql.headgate.spark.{FileFormats, FileOutputs, Session, Sessions}

final class DeltaSinkKind extends SinkKind {
  override def name: String = "delta"

  override def options(spec: SpecNode): SinkOptions = DeltaSinkOptions(spec.text("path"),
    spec.list("merge_key"), spec.list("partition_by"), spec.text("evolve") == "true")

  override def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks =
    new DeltaSinks(job, sinks, fsync)
}

/** @param key the columns by which rows are merged; without any, rows are appended
  * @param evolve whether columns that the table lacks are added to it
  */
case class DeltaSinkOptions(
    path: String, key: Seq[String], partitionBy: Seq[String], evolve: Boolean) extends SinkOptions

/** A batch is one commit of the table, with the batch's number as the version of a transaction whose id
  * is that of the run's writer. So the table itself says which batches it has.
  *
  * Rows to append are written by the tasks into the table's folder, where nobody sees a file that no
  * commit names. All others are written aside by the tasks, and then by Delta.
  */
private final class DeltaSinks(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean) extends JobSinks {
  /** Spark makes the write, and so this, anew for each batch. */
  private var batch: BatchWrite = _
  private var tables: Map[Int, TablePlan] = Map.empty

  override def prepare(batch: BatchWrite): TaskPlan = {
    this.batch = batch
    tables = sinks.map { s =>
      s.number -> explained(s)(tableOf(s, batch.session).plan(batch.structs(s.number)))
    }.toMap
    DeltaPlan(sinks.map(s => s.number -> explained(s)(plan(s))).toMap)
  }

  private def plan(sink: SinkSpec): DeltaSinkPlan = {
    val table = tables(sink.number)
    val at = folder(sink, table.adopted)
    at.create()
    val outputs = FileFormats.outputs(
      batch.session, "parquet", Map.empty, table.stored, DeltaBatches.Parquet)
    DeltaSinkPlan(prefix(sink), at.address, batch.outBy(table.out.map(Marker(_)), sink), outputs,
      fsync && table.adopted)
  }

  override def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit = {
    val plan = tables(sink.number)
    val staged = files(messages)
    if (staged.nonEmpty) {
      explained(sink) {
        tableOf(sink, batch.session).commit(
          mark.batch, batch.structs(sink.number), plan, folder(sink, plan.adopted), staged)
      }
      committed()
    }
    if (!plan.adopted) removeLeftovers(sink, mark.batch)
  }

  /** With those of tasks that died. */
  private def removeLeftovers(sink: SinkSpec, batch: Long): Unit = {
    val at = folder(sink, adopted = false)
    at.list().filter(name => TaskPlace.belongsTo(name.stripPrefix("."), prefix(sink), batch))
      .foreach(at.delete)
  }

  /** What a commit names stays, even if nobody has heard of the commit. */
  override def abort(sink: SinkSpec, number: Long, messages: Seq[SinkMessage]): Unit = {
    val at = folder(sink, tables(sink.number).adopted)
    if (files(messages).nonEmpty && !tableOf(sink, batch.session).lastBatch.exists(_ >= number)) {
      files(messages).foreach(f => at.delete(f.name))
    }
  }

  override def markers(): Map[Int, Seq[Marker]] =
    sinks.map(s => s.number -> tableOf(s, Sessions.active).lastBatch.map(Marker(_)).toSeq).toMap

  private def files(messages: Seq[SinkMessage]): Seq[Staged] = messages.collect { case s: Staged => s }

  private def optionsOf(sink: SinkSpec): DeltaSinkOptions = sink.options.asInstanceOf[DeltaSinkOptions]

  private def tableOf(sink: SinkSpec, session: Session): DeltaBatches =
    new DeltaBatches(session, sink.name, optionsOf(sink), job.writerId(sink), fsync)

  /** Where tasks write: the table's own folder, or one within that is none of its partitions. */
  private def folder(sink: SinkSpec, adopted: Boolean): HomeFiles = {
    val table = HomeFiles.at(optionsOf(sink).path)
    if (adopted) table else table.below("_headgate")
  }

  /** How the names of the writer's files begin: plain letters, since the table's log has names as URLs. */
  private def prefix(sink: SinkSpec): String =
    "part-" + UUID.nameUUIDFromBytes(job.writerId(sink).getBytes(UTF_8))

  private def explained[T](sink: SinkSpec)(body: => T): T =
    DeltaFailures.explained(sink.name, optionsOf(sink).path)(body)
}

/** What a task has to know of one sink.
  *
  * @param committed the last batch that the table has, or -1: a batch up to it is not written again
  */
private case class DeltaSinkPlan(
    prefix: String, folder: String, committed: Long, outputs: FileOutputs, fsync: Boolean)

private case class DeltaPlan(sinks: Map[Int, DeltaSinkPlan]) extends TaskPlan {
  override def open(task: TaskPlace): TaskSinks = (sink: Int) => {
    val plan = sinks(sink)
    if (task.batch <= plan.committed) new DrainWriter
    else new StagedFile(task, plan.prefix, plan.folder, plan.outputs, plan.fsync)
  }
}
