/** Owns committing a batch to a log topic, exactly once. */
package org.apache.spark.sql.headgate.sink

import java.io.File

import org.apache.spark.sql.headgate.log.{Segment, Topic, WriterRecord}

/** Gives the staged files of a batch their offsets and renames them in.
  *
  * 1. Under the topic's lock, finish what any crashed writer had committed.
  * 2. If the writer's file shows this batch or a later one, the batch is out: done.
  * 3. Assign offsets behind the last segment, task by task.
  * 4. Write the writer's file with the batch and all renames to be done. This is the commit point.
  * 5. Rename. After a crash anyone who takes the lock next does the rest.
  */
final class LogCommit(topic: Topic, writerId: String, fsync: Boolean) {

  def commit(batch: Long, files: Seq[Staged], committed: () => Unit): Unit =
    if (files.nonEmpty || leftovers(batch).nonEmpty) topic.locked {
      if (files.nonEmpty && lastBatch < batch) {
        if (fsync) Topic.sync(topic.staging)
        val record = WriterRecord(batch, place(files))
        topic.writeWriter(writerId, record, fsync)
        committed()
        topic.rename(record, fsync)
      }
      // Whatever belongs to the topic is renamed by now; the rest is of tasks that died.
      leftovers(batch).foreach(Topic.deleteQuietly)
    }

  /** Makes visible what a crash left committed but not renamed. */
  def recover(): Unit = if (topic.exists) topic.locked(())

  /** The last batch of this writer that is in the topic, or -1. */
  def lastBatch: Long = topic.readWriter(writerId).map(_.batch).getOrElse(-1L)

  /** Removes staged files of a batch that failed, unless they are committed after all. */
  def abort(batch: Long, files: Seq[Staged]): Unit =
    if (files.nonEmpty && lastBatch < batch) {
      files.foreach(f => Topic.deleteQuietly(topic.staging.resolve(f.name).toFile))
    }

  private def place(files: Seq[Staged]): Seq[(String, String)] = {
    val now = System.currentTimeMillis()
    files.groupBy(_.partition).toSeq.sortBy(_._1).flatMap { case (p, ofPartition) =>
      val last = topic.segments(p).lastOption
      // Times never go back within a partition, so that a time can be looked up by bisection.
      val millis = math.max(now, last.map(_.millis).getOrElse(0L))
      var base = last.map(_.end).getOrElse(0L)
      ofPartition.map { f =>
        val segment = Segment(base, f.rows, millis, f.keyed)
        base = segment.end
        s"_staging/${f.name}" -> s"${Topic.partitionName(p)}/${segment.name}"
      }
    }
  }

  private def leftovers(batch: Long): Seq[File] =
    Option(topic.staging.toFile.list()).toSeq.flatten
      .filter(LogCommit.belongsTo(_, writerId, batch)).map(new File(topic.staging.toFile, _))
}

object LogCommit {

  /** Whether a staged file was made by a writer for a batch up to `batch` (see TaskPlace.prefix). */
  def belongsTo(name: String, writerId: String, batch: Long): Boolean =
    name.startsWith(writerId + "-") && {
      val number = name.substring(writerId.length + 1).takeWhile(_ != '-')
      number.length >= 10 && number.forall(_.isDigit) && number.toLong <= batch
    }
}
