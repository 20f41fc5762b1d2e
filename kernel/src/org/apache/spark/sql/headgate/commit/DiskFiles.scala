/** Owns small files on a local disk: their paths and names, and writing them as a whole. */
package org.apache.spark.sql.headgate.commit

import java.io.File
import java.net.URLDecoder
import java.nio.channels.FileChannel
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths, StandardCopyOption, StandardOpenOption}
import java.util.UUID

object DiskFiles {

  /** A plain path or a `file:` one, of what lives on a disk and not in an object store. */
  def path(path: String): Path = {
    require(path != null && path.nonEmpty, "a path must be given, got none")
    val plain = if (path.startsWith("file:")) "/" + path.substring(5).dropWhile(_ == '/') else path
    require(!plain.matches("[A-Za-z][A-Za-z0-9+.-]+://.*"), s"not a path on a local disk: $path")
    Paths.get(plain).toAbsolutePath.normalize
  }

  /** Writes a small file aside and renames it in, so that nobody ever reads half of it. */
  def writeAtomically(path: Path, text: String, fsync: Boolean): Unit = {
    if (fsync) DiskSync.createFolders(path.getParent) else Files.createDirectories(path.getParent)
    val aside = path.resolveSibling("." + path.getFileName + "." + UUID.randomUUID)
    val channel = FileChannel.open(aside, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)
    try {
      val bytes = java.nio.ByteBuffer.wrap(text.getBytes(UTF_8))
      while (bytes.hasRemaining) channel.write(bytes)
      if (fsync) channel.force(true)
    } finally channel.close()
    Files.move(aside, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING)
    if (fsync) sync(path.getParent)
  }

  /** Makes a file's bytes, or a folder's names, survive a power cut. */
  def sync(path: Path): Unit = DiskSync.folder(path)

  def deleteQuietly(file: File): Unit = Files.deleteIfExists(file.toPath)

  /** A name as part of a file name: what a file system may not like is written as %XX. */
  def fileName(name: String): String =
    name.getBytes("UTF-8").map { b =>
      val c = (b & 0xff).toChar
      if (c.isLetterOrDigit && c < 128 || c == '_' || c == '-') c.toString else f"%%${b & 0xff}%02X"
    }.mkString

  /** The name that [[fileName]] has written. */
  def nameIn(fileName: String): String = URLDecoder.decode(fileName, UTF_8)
}
