package org.apache.spark.sql.headgate.commit

import java.nio.file.{Files, NoSuchFileException, Path}
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

/**
 * Brings the tables of a RocksDB snapshot to the disk before the snapshot itself is there.
 *
 * RocksDBFileManager copies them with Hadoop's own file system, so no file manager of ours sees them.
 * They have unique names and never change: those that were forced once are remembered.
 */
private[headgate] object TableFiles {
  private val Folders = Seq("SSTs", "logs")
  private val forced = new ConcurrentHashMap[Path, Set[String]]

  /** @param store the folder in which the snapshot is about to appear */
  def force(store: Path): Unit = Folders.map(store.resolve).foreach { folder =>
    val names = list(folder)
    val known = forced.getOrDefault(folder, Set.empty)
    val fresh = names.diff(known)
    if (fresh.nonEmpty) {
      DiskSync.files(fresh.toSeq.map(folder.resolve))
      DiskSync.folder(folder)
    }
    if (names.nonEmpty) forced.put(folder, names)
  }

  private def list(folder: Path): Set[String] =
    try {
      val found = Files.list(folder)
      try found.iterator.asScala.map(_.getFileName.toString).toSet finally found.close()
    } catch { case _: NoSuchFileException => Set.empty }
}
