/** Owns sinks that append to log topics, exactly once. */
package org.apache.spark.sql.headgate.sinks.log

import java.nio.file.Files

import org.apache.spark.sql.headgate.commit.{Marker, Owner}
import org.apache.spark.sql.headgate.sinks.core._
import org.apache.spark.sql.headgate.sources.log.Topic
import org.apache.spark.sql.types.StructType

final class LogSinkKind extends SinkKind {
  override def name: String = "log"

  override def options(spec: SpecNode): SinkOptions =
    LogSinkOptions(spec.text("path"), spec.list("hidden"), spec.number("partitions", 1))

  override def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks =
    new LogSinks(job, sinks, fsync)
}

/** @param hidden the columns that come first and are no part of the value: the record's key, and whether the
  *               row deletes that of its key
  * @param partitions of a topic that the sink has to create
  */
case class LogSinkOptions(path: String, hidden: Seq[String], partitions: Int) extends SinkOptions

private final class LogSinks(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean) extends JobSinks {
  private val commits =
    sinks.map(s => s.number -> new LogCommit(topicOf(s), job, s, fsync)).toMap

  private def optionsOf(sink: SinkSpec): LogSinkOptions = sink.options.asInstanceOf[LogSinkOptions]
  private def topicOf(sink: SinkSpec): Topic = Topic.at(optionsOf(sink).path)

  override def recover(): Unit = commits.values.foreach(_.recover())

  override def prepare(batch: BatchWrite): TaskPlan =
    LogPlan(sinks.map(s => s.number -> plan(s, batch)).toMap, batch.timeZone, fsync)

  private def plan(sink: SinkSpec, batch: BatchWrite): LogSinkPlan = {
    val options = optionsOf(sink)
    val topic = topicOf(sink)
    topic.createIfMissing(options.partitions)
    Files.createDirectories(topic.staging)
    val commit = commits(sink.number)
    commit.owner.check(job.owner, sink.name)
    LogSinkPlan(job.writerId(sink), batch.structs(sink.number), topic.staging.toString,
      batch.outBy(commit.marker, sink), options.hidden, topic.partitions)
  }

  override def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit =
    commits(sink.number).commit(mark, staged(messages), committed)

  override def abort(sink: SinkSpec, batch: Long, messages: Seq[SinkMessage]): Unit =
    commits(sink.number).abort(batch, staged(messages))

  private def staged(messages: Seq[SinkMessage]): Seq[Staged] = messages.collect { case s: Staged => s }

  override def markers(): Map[Int, Seq[Marker]] = commits.map { case (n, c) => n -> c.settledMarker.toSeq }

  override def owners(): Map[Int, Owner] =
    for ((n, c) <- commits; owner <- c.owner.read()) yield n -> owner

  override def takeOver(): Unit = commits.values.foreach(_.owner.takeOver(job.owner))
}

/** What a task has to know of one sink.
  *
  * @param committed the sink's last committed batch, or -1: a batch up to it is not written again
  * @param partitions of the topic
  */
private case class LogSinkPlan(
    writerId: String,
    schema: StructType,
    staging: String,
    committed: Long,
    hidden: Seq[String],
    partitions: Int)

private case class LogPlan(sinks: Map[Int, LogSinkPlan], timeZone: String, fsync: Boolean)
  extends TaskPlan {

  override def open(task: TaskPlace): TaskSinks = (sink: Int) => {
    val plan = sinks(sink)
    if (task.batch <= plan.committed) new DrainWriter
    else new LogWriter(task, plan.writerId, plan.staging, plan.schema, plan.hidden, plan.partitions,
      timeZone, fsync)
  }
}
