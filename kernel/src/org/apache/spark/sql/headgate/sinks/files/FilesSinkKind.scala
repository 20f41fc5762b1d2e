/** Owns sinks that write folders of files, exactly once. */
package org.apache.spark.sql.headgate.sinks.files

import org.apache.spark.sql.headgate.commit.{DiskSync, Marker, Owner}
import org.apache.spark.sql.headgate.sinks.core._
import org.apache.spark.sql.headgate.spark.{FileFormats, FileOutputs}

final class FilesSinkKind extends SinkKind {
  override def name: String = "files"

  override def options(spec: SpecNode): SinkOptions = {
    val format = spec.text("format", "parquet")
    require(FileFormats.names.contains(format),
      s"sink '${spec.text("name")}': format must be parquet, json or csv, got '$format'")
    FilesSinkOptions(spec.text("path"), format, spec.texts("options"))
  }

  override def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks =
    new FilesSinks(job, sinks, fsync)
}

/** @param format parquet, json or csv
  * @param options of the format
  */
case class FilesSinkOptions(path: String, format: String, options: Map[String, String])
  extends SinkOptions

private final class FilesSinks(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean) extends JobSinks {
  private val commits =
    sinks.map(s => s.number -> new FilesCommit(job, s, optionsOf(s).path, fsync)).toMap

  private def optionsOf(sink: SinkSpec): FilesSinkOptions =
    sink.options.asInstanceOf[FilesSinkOptions]

  override def prepare(batch: BatchWrite): TaskPlan =
    FilesPlan(sinks.map(s => s.number -> plan(s, batch)).toMap, fsync)

  private def plan(sink: SinkSpec, batch: BatchWrite): FilesSinkPlan = {
    val commit = commits(sink.number)
    DiskSync.createFolders(commit.staging)
    commit.owner.check(job.owner, sink.name)
    val options = optionsOf(sink)
    val outputs = FileFormats.outputs(
      batch.session, options.format, options.options, batch.structs(sink.number))
    FilesSinkPlan(job.writerId(sink), commit.staging.toString, batch.outBy(commit.marker, sink), outputs)
  }

  override def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit = {
    commits(sink.number).commit(mark, staged(messages))
    if (messages.nonEmpty) committed()
  }

  override def abort(sink: SinkSpec, batch: Long, messages: Seq[SinkMessage]): Unit =
    commits(sink.number).abort(batch, staged(messages))

  private def staged(messages: Seq[SinkMessage]): Seq[Staged] = messages.collect { case s: Staged => s }

  override def markers(): Map[Int, Seq[Marker]] = commits.map { case (n, c) => n -> c.marker.toSeq }

  override def owners(): Map[Int, Owner] =
    for ((n, c) <- commits; owner <- c.owner.read()) yield n -> owner

  override def takeOver(): Unit = commits.values.foreach(_.owner.takeOver(job.owner))
}

/** What a task has to know of one sink.
  *
  * @param committed the sink's last committed batch, or -1: a batch up to it is not written again
  */
private case class FilesSinkPlan(
    writerId: String, staging: String, committed: Long, outputs: FileOutputs)

private case class FilesPlan(sinks: Map[Int, FilesSinkPlan], fsync: Boolean) extends TaskPlan {
  override def open(task: TaskPlace): TaskSinks = (sink: Int) => {
    val plan = sinks(sink)
    if (task.batch <= plan.committed) new DrainWriter
    else new StagedFile(task, plan.writerId, plan.staging, plan.outputs, fsync)
  }
}
