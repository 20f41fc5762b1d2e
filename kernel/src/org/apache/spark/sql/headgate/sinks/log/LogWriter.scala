/** Owns a log sink's part of a task. */
package org.apache.spark.sql.headgate.sinks.log

import java.io.{File, FileOutputStream}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.commit.DiskFiles
import org.apache.spark.sql.headgate.json.{JsonBytes, JsonRowWriter}
import org.apache.spark.sql.headgate.sinks.core.{RecordParts, SinkMessage, SinkWriter, Staged, TaskPlace}
import org.apache.spark.sql.headgate.sources.log.{KeyText, Topic}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/** Rows as lines of JSON, one staged file a topic partition. */
final class LogWriter(
    place: TaskPlace,
    writerId: String,
    staging: String,
    schema: StructType,
    hidden: Seq[String],
    partitions: Int,
    timeZone: String,
    fsync: Boolean)
  extends SinkWriter {

  private final class Open(val partition: Int) {
    val name = s"${place.prefix(writerId)}-$partition.part"
    val file = new File(staging, name)
    val out = new FileOutputStream(file)
    val bytes = new JsonBytes(LogWriter.FlushAt + (1 << 14))
    var rows = 0L
  }

  private val keyed = hidden.headOption.contains("key")
  private val deleted = hidden.indexOf(RecordParts.Deleted)
  private val json = new JsonRowWriter(schema, timeZone, hidden.length)
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
    // a key without a value is a deletion
    if (deleted < 0 || !row.getBoolean(deleted)) json.write(row, bytes)
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

  override def messages: Seq[SinkMessage] =
    open.map(f => Staged(f.name, f.partition, f.rows, keyed))

  override def abort(): Unit = open.foreach { f =>
    f.out.close()
    DiskFiles.deleteQuietly(f.file)
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
