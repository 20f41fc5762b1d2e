/** Owns how files of a Spark checkpoint are opened, written and checked. */
package org.apache.spark.sql.headgate.spark

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.{CheckpointFileManager => Manager, Checksum}
import org.apache.spark.sql.internal.SQLConf

object CheckpointFiles {

  /** The manager that the settings name. */
  def of(folder: Path, hadoop: Configuration): CheckpointFileManager = Manager.create(folder, hadoop)

  /** Spark's own manager, whatever the settings name. */
  def plain(folder: Path, hadoop: Configuration): CheckpointFileManager = {
    val settings = new Configuration(hadoop)
    settings.unset(SQLConf.STREAMING_CHECKPOINT_FILE_MANAGER_CLASS.parent.key)
    Manager.create(folder, settings)
  }

  /** Writes a file as a whole, or not at all. */
  def write(files: CheckpointFileManager, file: Path, bytes: Array[Byte]): Unit = {
    val out = files.createAtomic(file, overwriteIfPossible = true)
    try out.write(bytes)
    catch {
      case e: Throwable =>
        out.cancel()
        throw e
    }
    out.close()
  }

  /** The size and the CRC-32C of a file, by what Spark wrote beside it. */
  def checksum(json: String): (Long, Int) = {
    val found = Checksum.fromJson(json)
    (found.mainFileSize, found.value)
  }
}
