/** Owns a files sink's part of a task. */
package org.apache.spark.sql.headgate.sinks.files

import java.io.File

import scala.util.control.NonFatal

import org.apache.hadoop.mapreduce.{TaskAttemptContext, TaskAttemptID, TaskID, TaskType}
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{OutputWriter, OutputWriterFactory}
import org.apache.spark.sql.headgate.commit.DiskFiles
import org.apache.spark.sql.headgate.sinks.core.{SinkMessage, SinkWriter, Staged, TaskPlace}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/** Rows in one of Spark's own file formats, one staged file a task. */
final class FilesWriter(
    place: TaskPlace,
    writerId: String,
    staging: String,
    schema: StructType,
    factory: OutputWriterFactory,
    hadoop: SerializableConfiguration,
    fsync: Boolean)
  extends SinkWriter {

  private var out: OutputWriter = _
  private var name: String = _
  private var rows = 0L

  override def write(row: InternalRow): Unit = {
    if (out == null) {
      val id = new TaskAttemptID(new TaskID("", 0, TaskType.MAP, place.task), 0)
      val context: TaskAttemptContext = new TaskAttemptContextImpl(hadoop.value, id)
      name = place.prefix(writerId) + factory.getFileExtension(context)
      out = factory.newInstance(new File(staging, name).toURI.toString, schema, context)
    }
    out.write(row)
    rows += 1
  }

  override def finish(): Unit = if (out != null) {
    out.close()
    removeChecksum()
    if (fsync) DiskFiles.sync(new File(staging, name).toPath)
  }

  override def messages: Seq[SinkMessage] =
    if (out == null) Nil else Seq(Staged(name, place.task, rows, keyed = false))

  override def abort(): Unit = if (out != null) {
    try out.close()
    catch { case NonFatal(_) => } // closed already, or its disk is full: the file goes anyway
    finally {
      removeChecksum()
      DiskFiles.deleteQuietly(new File(staging, name))
    }
  }

  /** Hadoop's local file system writes one beside each file; it would not survive our renames. */
  private def removeChecksum(): Unit = DiskFiles.deleteQuietly(new File(staging, s".$name.crc"))
}
