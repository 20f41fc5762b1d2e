/** Owns sinks that Python writes: their rows are staged by the tasks and handed over at the commit. */
package org.apache.spark.sql.headgate.sinks.python

import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.{Durability, Marker}
import org.apache.spark.sql.headgate.sinks.core._
import org.apache.spark.sql.headgate.spark.{FileFormats, FileOutputs, Sessions}
import org.apache.spark.sql.types.StructType

final class PythonSinkKind extends SinkKind {
  override def name: String = "python"

  override def options(spec: SpecNode): SinkOptions = PythonSinkOptions(spec.exactlyOnce)

  override def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks =
    new PythonSinks(job, sinks, fsync)
}

/** @param exactlyOnce whether Python's code knows the tokens of batches that it has written */
case class PythonSinkOptions(exactlyOnce: Boolean) extends SinkOptions

/** A batch is written in three steps, within the fence of the commit:
  *
  * 1. The home notes that Python begins. From here on a sink that is exactly once may have the batch.
  * 2. Python writes the staged rows, under the batch's token.
  * 3. The home notes that the batch is out.
  *
  * A crash between 2 and 3 lets Python write the batch again, under the same token.
  */
private final class PythonSinks(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean) extends JobSinks {
  /** Spark makes the write, and so this, anew for each batch. */
  private var batch: BatchWrite = _

  private def exactlyOnce(sink: SinkSpec): Boolean =
    sink.options.asInstanceOf[PythonSinkOptions].exactlyOnce

  private def folder(sink: SinkSpec): SinkFolder = new SinkFolder(job, sink)

  override def prepare(batch: BatchWrite): TaskPlan = {
    this.batch = batch
    PythonPlan(sinks.map(s => s.number -> plan(s)).toMap)
  }

  private def plan(sink: SinkSpec): PythonSinkPlan = {
    val at = folder(sink)
    at.create()
    val stored = PythonSinks.stored(batch.structs(sink.number))
    PythonSinkPlan(at.prefix, at.staged.address, batch.outBy(at.out, sink),
      FileFormats.outputs(batch.session, "parquet", Map.empty, stored))
  }

  override def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit = {
    val files = messages.collect { case s: Staged => s }
    val at = folder(sink)
    if (files.nonEmpty && !at.out.exists(_.holds(mark, sink.name))) {
      val sync = fsync && Durability.onDisk(Sessions.setting(batch.session, Durability.Key).orNull)
      if (exactlyOnce(sink)) at.write(mark, isOut = false, sync)
      val schema = batch.structs(sink.number)
      val sized = files.map(f => at.staged.path(f.name) -> at.staged.size(f.name))
      val rows = FileFormats.parquetRows(batch.session, sized, PythonSinks.stored(schema), schema)
      val request = PythonSinks.request(job, sink, mark, files, sized.map(_._2).sum)
      PythonWriters.of(job.writerId(sink), sink.name).write(rows, request)
      committed()
      at.write(mark, isOut = true, sync)
    }
    at.removeStaged(mark.batch)
  }

  /** Only what this write has staged: a driver that lost its lease must leave the other's files. */
  override def abort(sink: SinkSpec, batch: Long, messages: Seq[SinkMessage]): Unit =
    messages.collect { case s: Staged => folder(sink).staged.delete(s.name) }

  override def markers(): Map[Int, Seq[Marker]] = sinks.map { sink =>
    val at = folder(sink)
    sink.number -> (if (exactlyOnce(sink)) at.begun else at.out).toSeq
  }.toMap
}

private object PythonSinks {
  /** Columns by number: Parquet does not tell names apart that differ in case only. */
  def stored(schema: StructType): StructType =
    StructType(schema.zipWithIndex.map { case (field, n) => field.copy(name = s"c$n") })

  /** What Python hears of a batch. The token names it among all that ever were: a home that was restored
    * from a backup may make other batches of the same numbers, so what they are made of is in it.
    */
  def request(
      job: JobSpec, sink: SinkSpec, mark: Marker, files: Seq[Staged], bytes: Long): String = {
    val writer = job.writerId(sink)
    val of = Seq(writer, mark.batch.toString, mark.fingerprint).filter(_.nonEmpty)
    val json = JsonNodeFactory.instance.objectNode().put("job", job.job).put("run", job.run)
      .put("number", mark.batch).put("token", of.mkString("-")).put("writer", writer)
      .put("bytes", bytes)
    val tasks = json.putArray("tasks")
    files.foreach(f => tasks.add(f.partition))
    json.toString
  }
}

/** What a task has to know of one sink.
  *
  * @param committed the sink's last batch that is out, or -1: a batch up to it is not written again
  */
private case class PythonSinkPlan(
    prefix: String, staged: String, committed: Long, outputs: FileOutputs)

private case class PythonPlan(sinks: Map[Int, PythonSinkPlan]) extends TaskPlan {
  override def open(task: TaskPlace): TaskSinks = (sink: Int) => {
    val plan = sinks(sink)
    if (task.batch <= plan.committed) new DrainWriter
    // a power cut takes the batch with it, and the next start stages it again: nothing is synced
    else new StagedFile(task, plan.prefix, plan.staged, plan.outputs, fsync = false)
  }
}
