/** Owns small files of the home as the kernel reads and writes them: on a disk, or under a URL. */
package org.apache.spark.sql.headgate.commit

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, NoSuchFileException, Path => LocalPath}
import java.util.UUID

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileContext, FileSystem, Options, Path}

import org.apache.spark.sql.headgate.spark.{QueryHadoop, Sessions}

/** A folder of the home, on the driver. Python's side of it is home/files.py: both write whole files that
  * replace what was there, and neither relies on a folder being there.
  */
trait HomeFiles {
  def read(name: String): Option[Array[Byte]]

  /** A reader sees the old file or the new one.
    *
    * @param fsync whether the file is to survive a power cut when this returns
    */
  def write(name: String, text: String, fsync: Boolean): Unit

  def delete(name: String): Unit

  /** Names, in no order; none if there is no such folder. */
  def list(): Seq[String]

  /** Files of tasks may come into the folder. */
  def create(): Unit

  def below(name: String): HomeFiles

  /** A file as Hadoop names it, and its size. */
  def path(name: String): Path
  def size(name: String): Long

  /** The folder, as [[HomeFiles.at]] takes it. */
  def address: String
}

object HomeFiles {
  /** @param address a path, or a URL as Spark takes it */
  def at(address: String): HomeFiles =
    if (Places.isLocal(address)) new DiskFolder(DiskFiles.path(address))
    else new HadoopFolder(new Path(address), QueryHadoop.of(Sessions.active))

  /** The folder beside another. */
  def beside(address: String, name: String): HomeFiles =
    if (Places.isLocal(address)) new DiskFolder(DiskFiles.path(address).resolveSibling(name))
    else at(new Path(new Path(address).getParent, name).toString)
}

private final class DiskFolder(root: LocalPath) extends HomeFiles {
  override def read(name: String): Option[Array[Byte]] =
    try Some(Files.readAllBytes(root.resolve(name))) catch { case _: NoSuchFileException => None }

  override def write(name: String, text: String, fsync: Boolean): Unit =
    DiskFiles.writeAtomically(root.resolve(name), text, fsync)

  override def delete(name: String): Unit = DiskFiles.deleteQuietly(root.resolve(name).toFile)
  override def list(): Seq[String] = Option(root.toFile.list()).toSeq.flatten
  override def create(): Unit = DiskSync.createFolders(root)
  override def below(name: String): HomeFiles = new DiskFolder(root.resolve(name))
  override def path(name: String): Path = new Path(root.resolve(name).toUri)
  override def size(name: String): Long = Files.size(root.resolve(name))
  override def address: String = root.toString
}

private final class HadoopFolder(root: Path, hadoop: Configuration) extends HomeFiles {
  private val fs: FileSystem = root.getFileSystem(hadoop)

  override def read(name: String): Option[Array[Byte]] = StoredFile.read(fs, path(name))

  override def write(name: String, text: String, fsync: Boolean): Unit = {
    val bytes = text.getBytes(UTF_8)
    if (Places.isObjectStore(fs)) StoredFile.put(fs, path(name), bytes, ifAbsent = false)
    else writeAside(path(name), bytes, fsync)
  }

  private def writeAside(file: Path, bytes: Array[Byte], fsync: Boolean): Unit = {
    val aside = new Path(root, s".${file.getName}.${UUID.randomUUID}")
    val out = fs.create(aside, true)
    try {
      out.write(bytes)
      if (fsync) out.hsync()
    } finally out.close()
    FileContext.getFileContext(fs.getUri, hadoop).rename(aside, file, Options.Rename.OVERWRITE)
  }

  override def delete(name: String): Unit = fs.delete(path(name), false)

  override def list(): Seq[String] =
    try fs.listStatus(root).toSeq.map(_.getPath.getName) catch { case _: FileNotFoundException => Nil }

  override def create(): Unit = if (!Places.isObjectStore(fs)) fs.mkdirs(root)
  override def below(name: String): HomeFiles = new HadoopFolder(path(name), hadoop)
  override def path(name: String): Path = new Path(root, name)
  override def size(name: String): Long = fs.getFileStatus(path(name)).getLen
  override def address: String = root.toString
}
