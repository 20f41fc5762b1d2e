/** Owns a task of the write: every row to the sink that it names. */
package org.apache.spark.sql.headgate.sinks.core

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory
import org.apache.spark.sql.execution.datasources.OutputWriterFactory
import org.apache.spark.sql.headgate.sinks.console.ConsoleWriter
import org.apache.spark.sql.headgate.sinks.files.FilesWriter
import org.apache.spark.sql.headgate.sinks.log.LogWriter
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/** What a task needs to write one sink, made on the driver for each batch.
  *
  * @param committed the sink's last committed batch, or -1: a batch up to it is not written again
  * @param topicPartitions of the log topic
  */
case class SinkPlan(
    spec: SinkSpec,
    writerId: String,
    schema: StructType,
    staging: String,
    committed: Long,
    topicPartitions: Int,
    files: OutputWriterFactory,
    hadoop: SerializableConfiguration)

/** A task's part of all sinks of a kind whose rows are out when their task commits, and not only
  * when the driver does.
  */
trait ByTask {
  def writer(sink: Int, plan: SinkPlan): SinkWriter
  def commit(): Unit
  def abort(): Unit
}

/** What the tasks are told of the sinks of such a kind. */
trait ByTaskPlan extends Serializable {
  def kind: String
  def open(task: Int, batch: Long, timeZone: String): ByTask
}

/** @param start distinguishes the tasks of this query from those of one that lives on elsewhere
  * @param byTask the sinks whose tasks commit by themselves
  * @param outUntil batches up to it are not written, see [[JobSpec]]
  */
case class SinkTaskFactory(
    sinks: Array[SinkPlan],
    byTask: Array[ByTaskPlan],
    start: String,
    timeZone: String,
    fsync: Boolean,
    outUntil: Long)
  extends StreamingDataWriterFactory {

  override def createWriter(partitionId: Int, taskId: Long, epochId: Long): DataWriter[InternalRow] =
    new SinkTask(this, partitionId, taskId, epochId)

  private[headgate] def writer(sink: Int, task: Int, attempt: Long, batch: Long): SinkWriter = {
    val plan = sinks(sink)
    val place = TaskPlace(sink, plan.writerId, batch, task, s"$start-$attempt")
    if (batch <= plan.committed) new DrainWriter
    else plan.spec.kind match {
      case "log" =>
        new LogWriter(place, plan.staging, plan.schema, plan.spec.keyed, plan.topicPartitions,
          timeZone, fsync)
      case "files" =>
        new FilesWriter(place, plan.staging, plan.schema, plan.files, plan.hadoop, fsync)
      case "console" => new ConsoleWriter(sink, plan.schema, timeZone)
    }
  }
}

/** Writes the rows of one task; a sink's writer is made when its first row comes. */
final class SinkTask(factory: SinkTaskFactory, task: Int, attempt: Long, batch: Long)
  extends DataWriter[InternalRow] {

  private val widths = factory.sinks.map(_.schema.length)
  private val writers = new Array[SinkWriter](factory.sinks.length)
  private val byTask = mutable.LinkedHashMap.empty[String, ByTask]
  private var done = false

  override def write(row: InternalRow): Unit = {
    val sink = row.getInt(0)
    var writer = writers(sink)
    if (writer == null) {
      writer = makeWriter(sink)
      writers(sink) = writer
    }
    writer.write(row.getStruct(sink + 1, widths(sink)))
  }

  private def makeWriter(sink: Int): SinkWriter = {
    val plan = factory.sinks(sink)
    if (batch <= factory.outUntil) new DrainWriter
    else factory.byTask.find(_.kind == plan.spec.kind) match {
      case None => factory.writer(sink, task, attempt, batch)
      case Some(of) =>
        byTask.getOrElseUpdate(of.kind, of.open(task, batch, factory.timeZone)).writer(sink, plan)
    }
  }

  override def commit(): WriterCommitMessage = {
    val open = writers.toSeq.filter(_ != null)
    open.foreach(_.finish())
    // Last: what can still fail in this task has not failed by now.
    byTask.values.foreach(_.commit())
    done = true
    TaskFiles(task, open.flatMap(_.staged), open.flatMap(_.shown))
  }

  override def abort(): Unit = {
    done = true
    byTask.values.foreach(_.abort())
    writers.foreach(w => if (w != null) w.abort())
  }

  /** Spark calls this after commit and abort alike; a task that got neither leaves no files. */
  override def close(): Unit = if (!done) abort()
}
