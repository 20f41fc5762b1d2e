/** Owns a sink's part of a task: where its rows go until the batch is committed. */
package org.apache.spark.sql.headgate.sink

import java.io.{File, FileOutputStream}
import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.hadoop.mapreduce.{TaskAttemptContext, TaskAttemptID, TaskID, TaskType}
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.datasources.{OutputWriter, OutputWriterFactory}
import org.apache.spark.sql.headgate.json.{JsonBytes, JsonRowWriter}
import org.apache.spark.sql.headgate.log.{KeyText, Topic}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String
import org.apache.spark.util.SerializableConfiguration

/** Takes the rows of one sink in one task. */
abstract class SinkWriter {
  def write(row: InternalRow): Unit

  /** Closes all files and makes them durable; nothing is visible to readers yet. */
  def finish(): Unit

  def staged: Seq[Staged] = Nil
  def shown: Seq[Shown] = Nil

  /** Removes whatever was staged. */
  def abort(): Unit
}

/** Which task of which batch writes, for the names of its staged files. */
case class TaskPlace(sink: Int, writerId: String, batch: Long, task: Int, attempt: String) {
  def prefix: String = f"$writerId-$batch%010d-$task%05d-$attempt"
}

object TaskPlace {

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

/** Rows as lines of JSON, one staged file a topic partition. */
final class LogWriter(
    place: TaskPlace,
    staging: String,
    schema: StructType,
    keyed: Boolean,
    partitions: Int,
    timeZone: String,
    fsync: Boolean)
  extends SinkWriter {

  private final class Open(val partition: Int) {
    val name = s"${place.prefix}-$partition.part"
    val file = new File(staging, name)
    val out = new FileOutputStream(file)
    val bytes = new JsonBytes(LogWriter.FlushAt + (1 << 14))
    var rows = 0L
  }

  private val json = new JsonRowWriter(schema, timeZone, if (keyed) 1 else 0)
  private val files = new Array[Open](partitions)

  override def write(row: InternalRow): Unit = {
    val key = if (!keyed || row.isNullAt(0)) null else row.getUTF8String(0)
    val partition = if (key == null) place.task % partitions else LogWriter.partitionOf(key, partitions)
    var file = files(partition)
    if (file == null) {
      file = new Open(partition)
      files(partition) = file
    }
    val bytes = file.bytes
    if (keyed) KeyText.write(key, bytes)
    json.write(row, bytes)
    bytes.byte('\n')
    file.rows += 1
    if (bytes.length >= LogWriter.FlushAt) bytes.drainTo(file.out)
  }

  private def open: Seq[Open] = files.toSeq.filter(_ != null)

  override def finish(): Unit = open.foreach { f =>
    f.bytes.drainTo(f.out)
    if (fsync) f.out.getFD.sync()
    f.out.close()
  }

  override def staged: Seq[Staged] =
    open.map(f => Staged(place.sink, f.name, f.partition, f.rows, keyed))

  override def abort(): Unit = open.foreach { f =>
    f.out.close()
    Topic.deleteQuietly(f.file)
  }
}

object LogWriter {
  private val FlushAt = 1 << 16

  def partitionOf(key: UTF8String, partitions: Int): Int = key.getBaseObject match {
    case bytes: Array[Byte] =>
      Topic.partitionOf(
        bytes, (key.getBaseOffset - Platform.BYTE_ARRAY_OFFSET).toInt, key.numBytes, partitions)
    case _ => Topic.partitionOf(key.getBytes, 0, key.numBytes, partitions)
  }
}

/** Rows in one of Spark's own file formats, one staged file a task. */
final class FilesWriter(
    place: TaskPlace,
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
      name = place.prefix + factory.getFileExtension(context)
      out = factory.newInstance(new File(staging, name).toURI.toString, schema, context)
    }
    out.write(row)
    rows += 1
  }

  override def finish(): Unit = if (out != null) {
    out.close()
    removeChecksum()
    if (fsync) Topic.sync(new File(staging, name).toPath)
  }

  override def staged: Seq[Staged] =
    if (out == null) Nil else Seq(Staged(place.sink, name, place.task, rows, keyed = false))

  override def abort(): Unit = if (out != null) {
    try out.close()
    catch { case NonFatal(_) => } // closed already, or its disk is full: the file goes anyway
    finally {
      removeChecksum()
      Topic.deleteQuietly(new File(staging, name))
    }
  }

  /** Hadoop's local file system writes one beside each file; it would not survive our renames. */
  private def removeChecksum(): Unit = Topic.deleteQuietly(new File(staging, s".$name.crc"))
}

/** The first rows of a batch as JSON, for the driver to print. */
final class ConsoleWriter(sink: Int, schema: StructType, timeZone: String) extends SinkWriter {
  private val json = new JsonRowWriter(schema, timeZone)
  private val bytes = new JsonBytes(1 << 12)
  private val lines = mutable.ArrayBuffer.empty[String]
  private var rows = 0L

  override def write(row: InternalRow): Unit = {
    if (rows < ConsoleWriter.Rows) {
      bytes.clear()
      json.write(row, bytes)
      lines += new String(bytes.array, 0, bytes.length, UTF_8)
    }
    rows += 1
  }

  override def finish(): Unit = ()
  override def shown: Seq[Shown] = if (rows == 0) Nil else Seq(Shown(sink, rows, lines.toSeq))
  override def abort(): Unit = ()
}

object ConsoleWriter {
  /** So many rows of a batch are printed. */
  val Rows = 20
}
