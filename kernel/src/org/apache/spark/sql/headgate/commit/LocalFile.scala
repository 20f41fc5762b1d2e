package org.apache.spark.sql.headgate.commit

import java.io.{ByteArrayOutputStream, DataOutputStream, FilterOutputStream, OutputStream}
import java.nio.file.{Files, Path, StandardCopyOption}
import java.util.UUID
import java.util.zip.CRC32

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path => HadoopPath}

import org.apache.spark.sql.headgate.spark.CheckpointStream

/** When a file is brought to the disk. */
private[headgate] sealed trait Sync
private[headgate] object Sync {
  /** Before it appears; its name before it is closed. */
  case object Now extends Sync
  /** In the background: nothing relies on it before it is named elsewhere, see [[DiskSync]]. */
  case object Later extends Sync
  /** When the system gets to it. */
  case object Never extends Sync
}

/**
 * A checkpoint file on this machine's disk, which appears as a whole when it is closed.
 *
 * Where Hadoop has no native library it starts a process for each permission that it sets and for each
 * link that might be there: about sixty for a small batch, which cost more than the batch. Here there
 * are none. The file gets Hadoop's checksum file beside it, as others read it with that.
 *
 * @param before what must be on the disk before this file appears
 */
private[headgate] final class LocalFile(file: HadoopPath, overwrite: Boolean, temporary: Path,
    sums: LocalFile.Sums, sync: Sync, before: () => Unit)
  extends CheckpointStream(sums) {

  private val target = LocalFile.local(file)
  private val checksums = LocalFile.beside(target, ".crc")
  private val newChecksums = temporary.resolveSibling(s"${temporary.getFileName}.crc")
  private var ended = false

  override def close(): Unit = synchronized {
    if (!ended) {
      ended = true
      try {
        super.close()
        before()
        Files.write(newChecksums, sums.result())
        if (sync == Sync.Now) DiskSync.files(Seq(temporary, newChecksums))
        if (overwrite) replace() else appear()
        Files.move(newChecksums, checksums, StandardCopyOption.ATOMIC_MOVE)
        sync match {
          case Sync.Now => DiskSync.folder(target.getParent)
          case Sync.Later => DiskSync.later(target, checksums)
          case Sync.Never =>
        }
      } finally {
        Files.deleteIfExists(temporary)
        Files.deleteIfExists(newChecksums)
      }
    }
  }

  private def replace(): Unit = {
    // of what was there before: no reader may meet it with the new file
    if (Files.deleteIfExists(checksums) && sync == Sync.Now) DiskSync.folder(target.getParent)
    Files.move(temporary, target, StandardCopyOption.ATOMIC_MOVE)
  }

  /** A link, unlike a move, fails if somebody else has been there first. */
  private def appear(): Unit =
    try Files.createLink(target, temporary)
    catch {
      case _: java.nio.file.FileAlreadyExistsException => throw new FileAlreadyExistsException(s"$file is there already")
      case _: UnsupportedOperationException | _: java.nio.file.FileSystemException if !Files.exists(target) =>
        Files.move(temporary, target) // a disk without links: without ATOMIC_MOVE what is there stays
    }

  override def cancel(): Unit = synchronized {
    if (!ended) {
      ended = true
      try super.close() finally Files.deleteIfExists(temporary)
    }
  }
}

private[headgate] object LocalFile {
  private val Chunk = 512

  def create(file: HadoopPath, overwrite: Boolean, sync: Sync, before: () => Unit): LocalFile = {
    val target = local(file)
    val temporary = beside(target, s".${UUID.randomUUID()}.tmp")
    if (sync == Sync.Never) Files.createDirectories(target.getParent) else DiskSync.createFolders(target.getParent)
    new LocalFile(file, overwrite, temporary, new Sums(Files.newOutputStream(temporary)), sync, before)
  }

  def local(file: HadoopPath): Path = java.nio.file.Paths.get(file.toUri.getPath)

  private def beside(file: Path, end: String): Path = file.resolveSibling(s".${file.getFileName}$end")

  /** Sums up what passes in chunks, as Hadoop's ChecksumFileSystem does. */
  final class Sums(to: OutputStream) extends FilterOutputStream(to) {
    private val crc = new CRC32
    private var inChunk = 0
    private val found = new ByteArrayOutputStream
    private val data = new DataOutputStream(found)
    data.write(Array[Byte]('c', 'r', 'c', 0))
    data.writeInt(Chunk)

    override def write(byte: Int): Unit = write(Array(byte.toByte), 0, 1)

    override def write(bytes: Array[Byte], from: Int, length: Int): Unit = {
      out.write(bytes, from, length)
      var at = from
      while (at < from + length) {
        val some = math.min(Chunk - inChunk, from + length - at)
        crc.update(bytes, at, some)
        at += some
        inChunk += some
        if (inChunk == Chunk) endChunk()
      }
    }

    def result(): Array[Byte] = {
      if (inChunk > 0) endChunk()
      found.toByteArray
    }

    private def endChunk(): Unit = {
      data.writeInt(crc.getValue.toInt)
      crc.reset()
      inChunk = 0
    }
  }
}
