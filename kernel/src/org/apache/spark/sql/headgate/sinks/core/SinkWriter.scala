/** Owns a sink's part of a task: where its rows go until the batch is committed. */
package org.apache.spark.sql.headgate.sinks.core

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow

/** Takes the rows of one sink in one task. */
abstract class SinkWriter {
  def write(row: InternalRow): Unit

  /** Closes all files and makes them durable; nothing is visible to readers yet. */
  def finish(): Unit

  /** For the driver, once the writer has finished. */
  def messages: Seq[SinkMessage] = Nil

  /** Removes whatever was staged. */
  def abort(): Unit
}

/** Which task of which batch writes.
  *
  * @param attempt distinguishes the names of its staged files from those of any other attempt
  */
case class TaskPlace(task: Int, attempt: String, batch: Long) {
  def prefix(writerId: String): String = f"$writerId-$batch%010d-$task%05d-$attempt"
}

object TaskPlace {

  /** Whether a staged file was made by a writer for a batch up to `batch` (see `prefix`). */
  def belongsTo(name: String, writerId: String, batch: Long): Boolean =
    name.startsWith(writerId + "-") && {
      val number = name.substring(writerId.length + 1).takeWhile(_ != '-')
      number.length >= 10 && number.forall(_.isDigit) && number.toLong <= batch
    }

  /** Whether an earlier attempt of the task that runs on this thread was made. */
  def isRetry: Boolean = {
    val context = TaskContext.get()
    context != null && (context.attemptNumber() > 0 || context.stageAttemptNumber() > 0)
  }
}

/** Rows that were written by an earlier attempt of this batch: counted above, not written again. */
final class DrainWriter extends SinkWriter {
  override def write(row: InternalRow): Unit = ()
  override def finish(): Unit = ()
  override def abort(): Unit = ()
}
