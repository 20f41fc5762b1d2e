/** Owns what a task tells the driver about the files that it staged. */
package org.apache.spark.sql.headgate.sinks.core

import org.apache.spark.sql.connector.write.WriterCommitMessage

/** A staged file of one sink.
  *
  * @param name the file, under the sink's staging folder
  * @param partition the topic partition it is for (log), or the task's own number (files)
  */
case class Staged(sink: Int, name: String, partition: Int, rows: Long, keyed: Boolean)

/** The first rows that a task has for a console sink. */
case class Shown(sink: Int, rows: Long, lines: Seq[String])

/** All that one task wrote. */
case class TaskFiles(task: Int, staged: Seq[Staged], shown: Seq[Shown]) extends WriterCommitMessage
