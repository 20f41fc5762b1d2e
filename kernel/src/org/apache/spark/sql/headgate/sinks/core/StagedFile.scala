/** Owns a sink's part of a task as a staged file. */
package org.apache.spark.sql.headgate.sinks.core

import java.io.File

import scala.util.control.NonFatal

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.commit.{DiskFiles, Places}
import org.apache.spark.sql.headgate.spark.{FileOutput, FileOutputs}

/** Rows in one of Spark's own file formats, one staged file a task. */
final class StagedFile(
    place: TaskPlace,
    writerId: String,
    staging: String,
    outputs: FileOutputs,
    fsync: Boolean)
  extends SinkWriter {

  /** Until it is closed: closed ones still hold what they have written with. */
  private var out: FileOutput = _
  /** None as long as there are no rows. */
  private var name: String = _
  private var rows = 0L

  override def write(row: InternalRow): Unit = {
    if (out == null) {
      name = place.prefix(writerId) + outputs.extension(place.task)
      out = outputs.open(target, place.task)
    }
    out.write(row)
    rows += 1
  }

  /** As Spark makes paths from texts: nothing in it is escaped, not even a space or a percent sign. */
  private def target: String =
    if (local) new Path(new File(staging, name).toURI).toString else new Path(staging, name).toString

  private def local: Boolean = Places.isLocal(staging)

  override def finish(): Unit = if (out != null) {
    out.close()
    out = null
    removeChecksum()
    if (local && fsync) DiskFiles.sync(new File(staging, name).toPath)
  }

  override def messages: Seq[SinkMessage] =
    if (name == null) Nil else Seq(Staged(name, place.task, rows, keyed = false))

  override def abort(): Unit = if (name != null) {
    try if (out != null) out.close()
    catch { case NonFatal(_) => } // its disk is full: the file goes anyway
    finally if (local) { // elsewhere the commit deletes what tasks left
      removeChecksum()
      DiskFiles.deleteQuietly(new File(staging, name))
    }
  }

  /** Hadoop's local file system writes one beside each file; it would not survive our renames. */
  private def removeChecksum(): Unit = if (local) DiskFiles.deleteQuietly(new File(staging, s".$name.crc"))
}
