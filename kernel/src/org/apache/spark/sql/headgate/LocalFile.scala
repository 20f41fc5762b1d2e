package org.apache.spark.sql.headgate

import java.io.{ByteArrayOutputStream, DataOutputStream, FilterOutputStream, OutputStream}
import java.nio.file.{Files, Path, StandardCopyOption}
import java.util.UUID
import java.util.zip.CRC32

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path => HadoopPath}

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

/**
 * A checkpoint file on this machine's disk, which appears as a whole when it is closed.
 *
 * Where Hadoop has no native library it starts a process for each permission that it sets and for each
 * link that might be there: about sixty for a small batch, which cost more than the batch. Here there
 * are none. The file gets Hadoop's checksum file beside it, as others read it with that.
 */
private[headgate] final class LocalFile(file: HadoopPath, overwrite: Boolean, temporary: Path, sums: LocalFile.Sums)
  extends CancellableFSDataOutputStream(sums) {

  private val target = LocalFile.local(file)
  private val checksums = target.resolveSibling(s".${target.getFileName}.crc")
  private var ended = false

  override def close(): Unit = synchronized {
    if (!ended) {
      ended = true
      try {
        super.close()
        if (overwrite) {
          Files.deleteIfExists(checksums) // of what was there before: no reader may meet it with the new file
          Files.move(temporary, target, StandardCopyOption.ATOMIC_MOVE)
        } else appear()
        LocalFile.write(checksums, sums.result())
      } finally Files.deleteIfExists(temporary)
    }
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

  def create(file: HadoopPath, overwrite: Boolean): LocalFile = {
    val target = local(file)
    val temporary = target.resolveSibling(s".${target.getFileName}.${UUID.randomUUID()}.tmp")
    Files.createDirectories(target.getParent)
    new LocalFile(file, overwrite, temporary, new Sums(Files.newOutputStream(temporary)))
  }

  def local(file: HadoopPath): Path = java.nio.file.Paths.get(file.toUri.getPath)

  private def write(file: Path, bytes: Array[Byte]): Unit = {
    val temporary = file.resolveSibling(s"${file.getFileName}.${UUID.randomUUID()}.tmp")
    try {
      Files.write(temporary, bytes)
      Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE)
    } finally Files.deleteIfExists(temporary)
  }

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
