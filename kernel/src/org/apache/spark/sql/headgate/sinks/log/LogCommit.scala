/** Owns committing a batch to a log topic, exactly once. */
package org.apache.spark.sql.headgate.sinks.log

import java.io.File

import org.apache.spark.sql.headgate.commit.{DiskFiles, Fence, FolderOwner, Marker}
import org.apache.spark.sql.headgate.sinks.core.{JobSpec, SinkSpec, Staged, TaskPlace}
import org.apache.spark.sql.headgate.sources.log.{Segment, Topic, WriterRecord}

/** Gives the staged files of a batch their offsets and renames them in.
  *
  * 1. Under the topic's lock, finish what any crashed writer had committed.
  * 2. If the writer's file shows this batch, the batch is out: done.
  * 3. Assign offsets behind the last segment, task by task.
  * 4. Write the writer's file with the batch and all renames to be done. This is the commit point.
  * 5. Rename. After a crash anyone who takes the lock next does the rest.
  */
final class LogCommit(topic: Topic, spec: JobSpec, sink: SinkSpec, fsync: Boolean) {
  private val writerId = spec.writerId(sink)

  def commit(mark: Marker, files: Seq[Staged], committed: () => Unit): Unit = {
    val batch = mark.batch
    if (files.nonEmpty || leftovers(batch).nonEmpty) topic.locked {
      Fence.recheck()
      if (files.nonEmpty && !isOut(mark)) {
        owner.check(spec.owner, sink.name)
        if (fsync) DiskFiles.sync(topic.staging)
        val record = WriterRecord(mark, place(files))
        topic.writeWriter(writerId, record, fsync)
        committed()
        topic.rename(record, fsync)
      }
      // Whatever belongs to the topic is renamed by now; the rest is of tasks that died.
      leftovers(batch).foreach(DiskFiles.deleteQuietly)
    }
  }

  /** Makes visible what a crash left committed but not renamed. */
  def recover(): Unit = if (topic.exists) topic.locked(())

  /** The last batch of this writer that is in the topic. */
  def marker: Option[Marker] = topic.readWriter(writerId).map(_.marker)

  /** The same when no commit is under way: who takes a job over may find its old driver in one. */
  def settledMarker: Option[Marker] = if (topic.exists) topic.locked(marker) else None

  def owner: FolderOwner = new FolderOwner(topic.root, spec.job)

  private def isOut(mark: Marker): Boolean = marker.exists(_.holds(mark, sink.name))

  /** Removes staged files of a batch that failed, unless they are committed after all. */
  def abort(batch: Long, files: Seq[Staged]): Unit =
    if (files.nonEmpty && marker.forall(_.batch < batch)) {
      files.foreach(f => DiskFiles.deleteQuietly(topic.staging.resolve(f.name).toFile))
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
      .filter(TaskPlace.belongsTo(_, writerId, batch)).map(new File(topic.staging.toFile, _))
}
