/** Owns the files of Spark's checkpoint in an object store. */
package org.apache.spark.sql.headgate.commit

import java.io.{FileNotFoundException, IOException}
import java.util.Collections

import org.apache.hadoop.fs.{FileStatus, FileSystem, FSDataInputStream, Path, PathFilter}

import org.apache.spark.sql.headgate.spark.{CheckpointFileManager, CheckpointStream}

/**
 * A checkpoint without renames and without folders: a file is one object, written by one request, and a
 * folder is what stands before the last slash of its name.
 *
 * Spark's own managers write aside and rename, which in an object store is a copy and three questions, and
 * two drivers may both find that nobody was there before them.
 */
private[headgate] final class StoredFiles(root: Path, fs: FileSystem) extends CheckpointFileManager {
  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CheckpointStream =
    StoredFile.create(fs, file, overwriteIfPossible)

  override def open(file: Path): FSDataInputStream = fs.open(file)

  override def list(folder: Path, filter: PathFilter): Array[FileStatus] =
    try fs.listStatus(folder, filter) catch { case _: FileNotFoundException => Array.empty }

  override def mkdirs(folder: Path): Unit = ()

  /** An entry of a log is no folder: to look for one would be another request. */
  override def exists(file: Path): Boolean =
    if (!FencedFileManager.isLogEntry(file)) fs.exists(file)
    else try { fs.open(file).close(); true } catch { case _: FileNotFoundException => false }

  /** An entry of a log is deleted without a look whether it is a folder. */
  override def delete(file: Path): Unit =
    if (FencedFileManager.isLogEntry(file)) {
      val entries = fs.createBulkDelete(file.getParent)
      try {
        val left = entries.bulkDelete(Collections.singletonList(file))
        if (!left.isEmpty) throw new IOException(s"cannot delete $file: ${left.get(0).getValue}")
      } finally entries.close()
    } else try fs.delete(file, true) catch { case _: FileNotFoundException => }

  override def isLocal: Boolean = false
  override def createCheckpointDirectory(): Path = fs.makeQualified(root)
}
