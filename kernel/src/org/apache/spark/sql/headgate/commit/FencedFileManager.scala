package org.apache.spark.sql.headgate.commit

import java.nio.file.Files

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FSDataInputStream, Path, PathFilter}

import org.apache.spark.sql.headgate.spark.{CheckpointFileManager, CheckpointFiles, CheckpointStream}
import org.apache.spark.sql.headgate.testing.Failpoints

/**
 * Spark's own manager of checkpoint files, with files on a local disk written by [[LocalFile]], and a
 * [[Fence]] around entries of the offset and commit logs: those are what makes a batch planned and
 * done. Object stores have [[StoredFiles]]. An executor that does not see the home gets no manager ([[HomeProbe]]).
 * Named in spark.sql.streaming.checkpointFileManagerClass.
 *
 * A file that later steps rely on is on the disk when it is closed ([[Durability]]): offsets before any
 * sink commits, a batch's changelogs before its commit, tables before the snapshot that names them, and
 * that before Spark deletes what it replaces.
 */
class FencedFileManager(path: Path, hadoop: Configuration) extends CheckpointFileManager {
  HomeProbe.guard(hadoop)

  private val store = path.getFileSystem(hadoop)
  private val files =
    if (Places.isObjectStore(store)) new StoredFiles(path, store) else CheckpointFiles.plain(path, hadoop)
  private val onDisk = Durability.onDisk(hadoop)

  override def createAtomic(file: Path, overwriteIfPossible: Boolean): CheckpointStream = {
    val stream =
      if (files.isLocal) LocalFile.create(file, overwriteIfPossible, sync(file), () => beforeItAppears(file))
      else files.createAtomic(file, overwriteIfPossible)
    if (!FencedFileManager.isLogEntry(file)) stream
    else Fence.of(file.getParent.getParent, hadoop).fold(stream)(new FencedStream(stream, file, _))
  }

  private def sync(file: Path): Sync =
    if (!onDisk) Sync.Never
    else if (FencedFileManager.isChangelog(file.getName)) Sync.Later
    else Sync.Now

  /** What a file vouches for is on the disk before it. */
  private def beforeItAppears(file: Path): Unit = if (onDisk) {
    val folder = LocalFile.local(file).getParent
    if (folder.getFileName.toString == FencedFileManager.Commits) DiskSync.await(folder.getParent)
    else if (file.getName.endsWith(".zip")) TableFiles.force(folder)
  }

  override def open(file: Path): FSDataInputStream = files.open(file)
  override def list(folder: Path, filter: PathFilter): Array[FileStatus] = files.list(folder, filter)
  override def mkdirs(folder: Path): Unit =
    if (!files.isLocal) files.mkdirs(folder)
    else if (onDisk) DiskSync.createFolders(LocalFile.local(folder))
    else Files.createDirectories(LocalFile.local(folder))
  override def exists(file: Path): Boolean = files.exists(file)
  override def delete(file: Path): Unit = files.delete(file)
  override def isLocal: Boolean = files.isLocal
  override def createCheckpointDirectory(): Path = {
    if (files.isLocal) mkdirs(path)
    files.createCheckpointDirectory()
  }
  override def close(): Unit = files.close()
}

object FencedFileManager {
  private val Commits = "commits"
  private val Logs = Set("offsets", Commits)

  /** What makes a batch planned or done. */
  private[commit] def isLogEntry(file: Path): Boolean =
    file.getParent != null && Logs.contains(file.getParent.getName)

  /** A changelog of a store, or Spark's checksum of one. Its name is unique, and counts only when a
    * batch's entry in the commit log names it. */
  private def isChangelog(name: String): Boolean = name.stripSuffix(".crc").endsWith(".changelog")
}

/** The file appears when the stream is closed, and so within the fence or not at all. */
private final class FencedStream(stream: CheckpointStream, file: Path, fence: Fence)
  extends CheckpointStream(stream) {
  override def close(): Unit =
    try fence.section {
      reach(Failpoints.BeforeCommit)
      stream.close()
      reach(Failpoints.AfterCommit)
    } catch {
      case e: LeaseLostException => stream.cancel(); throw e
    }

  private def reach(point: String): Unit =
    if (file.getParent.getName == "commits") {
      file.getName.toLongOption.foreach(Failpoints.haltAt(point, _))
    }

  override def cancel(): Unit = stream.cancel()
}
