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
    FilesSinkOptions(spec.text("path"), format, spec.texts("options"), spec.list("partition_by"),
      spec.number("rows_per_file", 0))
  }

  override def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks =
    new FilesSinks(job, sinks, fsync)
}

/** @param format parquet, json or csv
  * @param options of the format
  * @param partitionBy columns whose values name folders
  * @param rowsPerFile at most; 0 if there is no end
  */
case class FilesSinkOptions(path: String, format: String, options: Map[String, String],
    partitionBy: Seq[String], rowsPerFile: Long) extends SinkOptions

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
    val splitting = Splitting(
      batch.structs(sink.number), options.partitionBy, options.rowsPerFile, batch.timeZone)
    val outputs =
      FileFormats.outputs(batch.session, options.format, options.options, splitting.stored)
    FilesSinkPlan(job.writerId(sink), commit.staging.toString, batch.outBy(commit.marker, sink), outputs,
      splitting)
  }

  override def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit = {
    commits(sink.number).commit(mark, placed(messages))
    if (messages.nonEmpty) committed()
  }

  override def abort(sink: SinkSpec, batch: Long, messages: Seq[SinkMessage]): Unit =
    commits(sink.number).abort(batch, placed(messages).map(_.file))

  private def placed(messages: Seq[SinkMessage]): Seq[Placed] = messages.collect {
    case s: Staged => Placed("", s)
    case p: Placed => p
  }

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
    writerId: String, staging: String, committed: Long, outputs: FileOutputs, splitting: Splitting)

private case class FilesPlan(sinks: Map[Int, FilesSinkPlan], fsync: Boolean) extends TaskPlan {
  override def open(task: TaskPlace): TaskSinks = (sink: Int) => {
    val plan = sinks(sink)
    if (task.batch <= plan.committed) new DrainWriter
    else if (plan.splitting.isNone) file(plan, task)
    else new SplitFiles(plan.splitting, n => file(plan, task.copy(attempt = s"${task.attempt}-$n")))
  }

  private def file(plan: FilesSinkPlan, task: TaskPlace): StagedFile =
    new StagedFile(task, plan.writerId, plan.staging, plan.outputs, fsync)
}
