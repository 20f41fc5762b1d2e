/** Owns what a task tells the driver about its rows. */
package org.apache.spark.sql.headgate.sinks.core

import org.apache.spark.sql.connector.write.WriterCommitMessage

/** What the writer of one sink in one task tells the driver; each kind has its own. */
trait SinkMessage extends Serializable

/** A staged file of a sink.
  *
  * @param name the file, under the sink's staging folder
  * @param partition the topic partition it is for (log), or the task's own number (files)
  */
case class Staged(name: String, partition: Int, rows: Long, keyed: Boolean) extends SinkMessage

/** All that one task wrote: the number of a sink, and what its writer tells. */
case class TaskMessage(task: Int, messages: Seq[(Int, SinkMessage)]) extends WriterCommitMessage
