/** Owns the way from a batch's commit to the Python code that writes it. */
package org.apache.spark.sql.headgate.sinks.python

import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.{DataFrame => ApiFrame}

/** Python's side of a sink, in the driver's Python process. */
trait PythonBatchWriter {

  /** Writes a batch.
    *
    * @param rows staged, a partition for each task that has rows
    * @param batch JSON: job, run, number, token, who writes, the bytes staged, and the numbers of these tasks
    * @return what went wrong, as [[PythonSinkException]] tells it; empty if nothing did
    */
  def call(rows: ApiFrame, batch: String): String
}

/** All that Python said: a coded line if the user's own code raised, else a trace. */
class PythonSinkException(message: String) extends RuntimeException(message)

/** Who writes which sink, by the id of the run's writer. */
object PythonWriters {
  private val known = new ConcurrentHashMap[String, PythonBatchWriter]()

  def put(writerId: String, writer: PythonBatchWriter): Unit = known.put(writerId, writer)

  private[python] def of(writerId: String, sink: String): Writing = {
    val writer = known.get(writerId)
    if (writer == null) throw new IllegalStateException(
      s"sink '$sink' is written by Python: its process must name a writer before it starts the query")
    new Writing(writer)
  }

  private[python] final class Writing(writer: PythonBatchWriter) {
    def write(rows: ApiFrame, batch: String): Unit = {
      val wrong = writer.call(rows, batch)
      if (wrong.nonEmpty) throw new PythonSinkException(wrong)
    }
  }
}
