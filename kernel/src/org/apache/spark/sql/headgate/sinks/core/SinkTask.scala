/** Owns a task of the write: every row to the sink that it names. */
package org.apache.spark.sql.headgate.sinks.core

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.write.{DataWriter, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory

/** @param plans of the kinds of sinks that there are
  * @param planOf by the number of a sink, which of them is its kind's
  * @param widths by the number of a sink, how many columns its rows have
  * @param start distinguishes the tasks of this query from those of one that lives on elsewhere
  * @param outUntil batches up to it are not written, see [[JobSpec]]
  */
case class SinkTaskFactory(
    plans: Array[TaskPlan],
    planOf: Array[Int],
    widths: Array[Int],
    start: String,
    outUntil: Long)
  extends StreamingDataWriterFactory {

  override def createWriter(partitionId: Int, taskId: Long, epochId: Long): DataWriter[InternalRow] =
    new SinkTask(this, TaskPlace(partitionId, s"$start-$taskId", epochId))
}

/** Writes the rows of one task; a sink's writer is made when its first row comes. */
final class SinkTask(factory: SinkTaskFactory, place: TaskPlace) extends DataWriter[InternalRow] {
  private val widths = factory.widths
  private val writers = new Array[SinkWriter](widths.length)
  private val kinds = new Array[TaskSinks](factory.plans.length)
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

  private def makeWriter(sink: Int): SinkWriter =
    if (place.batch <= factory.outUntil) new DrainWriter
    else {
      val kind = factory.planOf(sink)
      if (kinds(kind) == null) kinds(kind) = factory.plans(kind).open(place)
      kinds(kind).writer(sink)
    }

  override def commit(): WriterCommitMessage = {
    writers.foreach(w => if (w != null) w.finish())
    // Last: what can still fail in this task has not failed by now.
    kinds.foreach(k => if (k != null) k.commit())
    done = true
    TaskMessage(place.task, for {
      sink <- writers.indices if writers(sink) != null
      message <- writers(sink).messages
    } yield sink -> message)
  }

  override def abort(): Unit = {
    done = true
    kinds.foreach(k => if (k != null) k.abort())
    writers.foreach(w => if (w != null) w.abort())
  }

  /** Spark calls this after commit and abort alike; a task that got neither leaves no files. */
  override def close(): Unit = if (!done) abort()
}
