/** Owns writing one object of an object store. */
package org.apache.spark.sql.headgate.commit

import java.io.{ByteArrayOutputStream, FileNotFoundException, IOException, OutputStream}

import org.apache.hadoop.fs.{FileAlreadyExistsException, FileSystem, FSDataInputStream, FSDataOutputStream, FSDataOutputStreamBuilder, Path}
import org.apache.hadoop.util.functional.FutureIO

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure}
import org.apache.spark.sql.headgate.spark.CheckpointStream

/** An object that appears when the stream is closed, in place of what was there. */
private[headgate] final class StoredFile(out: FSDataOutputStream) extends CheckpointStream(out) {
  private var ended = false

  override def close(): Unit = if (!ended) {
    ended = true
    super.close()
  }

  override def cancel(): Unit = if (!ended) {
    ended = true
    // whoever closes a stream publishes what is in it
    try out.abort() catch { case _: UnsupportedOperationException => }
  }
}

/**
 * An object that appears when the stream is closed, unless its name is taken: the store itself decides
 * between two that write it at once (`If-None-Match: *`).
 *
 * The bytes are kept until then. A client that did not get the store's answer asks again, and then meets
 * its own object: one that holds these very bytes counts as written.
 */
private[headgate] final class NewStoredFile(fs: FileSystem, file: Path, bytes: ByteArrayOutputStream)
  extends CheckpointStream(bytes) {
  private var ended = false

  override def close(): Unit = if (!ended) {
    ended = true
    val mine = bytes.toByteArray
    try StoredFile.put(fs, file, mine, ifAbsent = true)
    catch {
      case e: IOException if StoredFile.read(fs, file).exists(!_.sameElements(mine)) =>
        throw new FileTakenException(file, e)
      case e: IOException if StoredFile.read(fs, file).isEmpty => throw e
      case _: IOException => // the very bytes: the answer to an earlier try was lost
    }
  }

  override def cancel(): Unit = ended = true
}

/** Another driver was first. Where it is an entry of one of Spark's logs, it has planned or done the batch. */
class FileTakenException(val coded: Coded) extends FileAlreadyExistsException(coded.line) with CodedFailure {
  def this(file: Path, cause: Throwable) = {
    this(Coded("BATCH_TAKEN", "path" -> file))
    initCause(cause)
  }
}

private[headgate] object StoredFile {
  private val IfAbsent = "fs.option.create.conditional.overwrite"
  private val WithoutLooking = "fs.s3a.create.performance"
  private val Length = "fs.option.openfile.length"
  private val Policy = "fs.option.openfile.read.policy"
  private val Small = 1 << 20
  private val Tries = 5

  def create(fs: FileSystem, file: Path, overwrite: Boolean): CheckpointStream =
    if (overwrite) new StoredFile(open(fs, file, ifAbsent = false))
    else new NewStoredFile(fs, file, new ByteArrayOutputStream)

  def put(fs: FileSystem, file: Path, bytes: Array[Byte], ifAbsent: Boolean): Unit = {
    val out = open(fs, file, ifAbsent)
    try out.write(bytes)
    catch { case e: Throwable => out.abort(); throw e }
    out.close()
  }

  /** A stream whose `close` publishes; without the questions whether a folder is in the way. */
  def open(fs: FileSystem, file: Path, ifAbsent: Boolean): FSDataOutputStream = {
    val s3 = fs.getUri.getScheme == "s3a"
    // S3A looks for itself before it asks the store on `overwrite(false)`: the condition is enough
    val builder: FSDataOutputStreamBuilder[_, _] = fs.createFile(file)
    builder.recursive()
    builder.overwrite(s3 || !ifAbsent)
    builder.opt(WithoutLooking, true)
    // S3A refuses to write rather than to write without the condition
    if (s3 && ifAbsent) builder.must(IfAbsent, true)
    builder.build().asInstanceOf[FSDataOutputStream]
  }

  /** The bytes of an object, or none if it is not there. One that is replaced between the two requests that
    * a reader makes is read again. */
  def read(fs: FileSystem, file: Path): Option[Array[Byte]] = read(fs, file, Tries)

  private def read(fs: FileSystem, file: Path, tries: Int): Option[Array[Byte]] =
    try Some(bytes(fs.open(file))) catch {
      case _: FileNotFoundException => None
      case e: IOException if tries > 1 && changed(e) => Thread.sleep(20); read(fs, file, tries - 1)
    }

  /** The same by one request, for what is small. S3A asks for an object's length before it reads it, unless
    * somebody says it: an object that is shorter ends where it ends.
    */
  def readSmall(fs: FileSystem, file: Path): Option[Array[Byte]] =
    if (fs.getUri.getScheme != "s3a") read(fs, file)
    else try {
      val opening = fs.openFile(file).optLong(Length, Small).opt(Policy, "whole-file")
      val found = bytes(FutureIO.awaitFuture(opening.build()))
      if (found.length < Small) Some(found) else read(fs, file)
    } catch { case _: FileNotFoundException => None }

  private def bytes(in: FSDataInputStream): Array[Byte] = try in.readAllBytes() finally in.close()

  private def changed(e: IOException): Boolean =
    e.getClass.getSimpleName == "RemoteFileChangedException" || e.isInstanceOf[java.io.EOFException]

  /** Copies a file of this machine, by the one client that also writes streams. */
  def upload(fs: FileSystem, from: java.nio.file.Path, to: Path): Unit = {
    val out: FSDataOutputStream = open(fs, to, ifAbsent = false)
    try java.nio.file.Files.copy(from, out: OutputStream)
    catch { case e: Throwable => out.abort(); throw e }
    out.close()
  }
}
