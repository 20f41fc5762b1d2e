package org.apache.spark.sql.headgate.commit

import java.io.IOException
import java.nio.channels.FileChannel
import java.nio.file.{FileAlreadyExistsException, Files, NoSuchFileException, Path, StandardOpenOption}
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue, ExecutionException, Future, LinkedBlockingQueue, ThreadPoolExecutor, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.{Path => HadoopPath}

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.util.ThreadUtils

/**
 * Brings files and folders of this machine to the disk: one at once, or many in a group.
 *
 * A group is for files that nothing relies on before they are named elsewhere, as changelogs are by
 * the batch's entry in the commit log. Their bytes are forced in the background as soon as they are
 * written, many at a time, since the disk then serves several with one flush; who is about to name
 * them waits, and only then forces each folder, once.
 */
private[headgate] object DiskSync {
  private val Threads = 8
  private val NoFolders = Set("Invalid argument", "Operation not supported")
  private val pool = {
    val made = new ThreadPoolExecutor(Threads, Threads, 10, TimeUnit.SECONDS, new LinkedBlockingQueue[Runnable],
      ThreadUtils.namedThreadFactory("headgate-disk-sync"))
    made.allowCoreThreadTimeOut(true)
    made
  }
  private val begun = new ConcurrentHashMap[Path, ConcurrentLinkedQueue[Future[_]]]

  /** A file's bytes. */
  def file(path: Path): Unit = force(path, metadata = false)

  /** A folder's names, where the file system can sync folders. */
  def folder(path: Path): Unit =
    try force(path, metadata = true)
    catch { case e: IOException if Files.isDirectory(path) && NoFolders.contains(e.getMessage) => }

  /** Several files at a time. */
  def files(paths: Seq[Path]): Unit = inParallel(paths)(file)

  /** Makes a folder with those above it; each new one is known on the disk to the one above. */
  def createFolders(path: Path): Unit = if (!Files.isDirectory(path)) {
    val above = path.toAbsolutePath.getParent
    createFolders(above)
    try Files.createDirectory(path)
    catch { case _: FileAlreadyExistsException if Files.isDirectory(path) => }
    folder(above)
  }

  /** Begins to force files of one folder, for whoever waits with `await`. */
  def later(paths: Path*): Unit = {
    val started = paths.map(path => pool.submit[Unit](() => file(path)))
    begun.compute(paths.head.getParent, (_, others) => {
      val all = if (others == null) new ConcurrentLinkedQueue[Future[_]] else others
      started.foreach(all.add(_))
      all
    })
  }

  /** Returns when all files that were begun in folders below one, or in it, are on the disk. */
  def await(below: Path): Unit = if (!begun.isEmpty) {
    val waiting = begun.keySet.asScala.filter(_.startsWith(below)).toSeq
      .flatMap(path => Option(begun.remove(path)).map(path -> _))
    waiting.foreach { case (path, files) => files.asScala.foreach(ended(path, _)) }
    inParallel(waiting.map(_._1))(folder)
  }

  /** The same for the stores of a task, unless the driver lives in this process: it waits for all. */
  def awaitInExecutor(stores: Seq[HadoopPath]): Unit =
    if (!begun.isEmpty && SparkEnv.get.executorId != SparkContext.DRIVER_IDENTIFIER) {
      stores.map(LocalFile.local).foreach(await)
    }

  def inParallel(paths: Seq[Path])(body: Path => Unit): Unit = {
    // one is done here: a single one needs no other thread
    val others = paths.drop(1).map(path => path -> pool.submit[Unit](() => body(path)))
    paths.headOption.foreach(body)
    others.foreach { case (path, future) => ended(path, future) }
  }

  private def ended(path: Path, future: Future[_]): Unit =
    try future.get()
    catch {
      // of an attempt that was given up: the batch names no such file
      case e: ExecutionException if e.getCause.isInstanceOf[NoSuchFileException] =>
      case e: ExecutionException =>
        throw new IOException(s"$path could not be brought to the disk: ${e.getCause.getMessage}", e.getCause)
    }

  private def force(path: Path, metadata: Boolean): Unit = {
    val channel = FileChannel.open(path, StandardOpenOption.READ)
    try channel.force(metadata) finally channel.close()
  }
}
