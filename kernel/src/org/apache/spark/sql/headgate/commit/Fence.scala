package org.apache.spark.sql.headgate.commit

import java.nio.channels.{FileChannel, OverlappingFileLockException}
import java.nio.file.{Files, Path => LocalPath, Paths, StandardOpenOption}
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}
import java.util.concurrent.locks.ReentrantLock

import com.fasterxml.jackson.databind.ObjectMapper
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure}

/**
 * Keeps a driver that lost its job's lease from committing anything more.
 *
 * What makes a batch visible (the sinks, Spark's offset and commit logs) happens in sections. In a
 * section the process holds the job's lock file and has looked whether the lease is still its own;
 * who takes the lease over waits until no section is open (`Fence.wait`), and the next one of the
 * old driver fails. Executors need no fence: state files and staged rows have names of their own.
 *
 * On an object store there are no locks, and no section can wait for another. There the store decides:
 * an entry of Spark's logs is written only if its name is free ([[NewStoredFile]]), so that of two drivers
 * one makes a batch planned or done and the other fails; a sink looks at the lease once more when it has
 * what keeps others out of its output (`Fence.recheck`).
 *
 * @param lockFile null where the home has no locks
 */
final class Fence(lockFile: LocalPath, jobFile: Path, token: String, hadoop: Configuration) {
  @volatile private var lost: String = _
  def isLost: Boolean = lost != null

  def section[T](body: => T): T =
    if (lockFile == null) { check(); Fence.within(this)(body) }
    else SectionLock.of(lockFile).held(Fence.TimeoutMs) { check(); body }

  /** Throws if the lease is lost. Between two looks it may get lost: what must not, has a section. */
  def check(): Unit = {
    if (lost == null) lost = reason()
    if (lost != null) throw new LeaseLostException(lost)
  }

  private def reason(): String = {
    val lease = StoredFile.readSmall(jobFile.getFileSystem(hadoop), jobFile)
      .map(Fence.mapper.readTree(_).get("lease")).orNull
    if (lease == null || lease.isNull) s"the lease in $jobFile is gone"
    else if (lease.path("owner").path("token").asText == token) null
    else {
      val owner = lease.path("owner")
      s"process ${owner.path("pid").asText} on ${owner.path("host").asText} has taken over the lease"
    }
  }
}

/** Another process drives the job, or none does. */
class LeaseLostException(val coded: Coded) extends RuntimeException(coded.line) with CodedFailure {
  def this(why: String) = this(Coded("LEASE_LOST", "text" -> why))
}

object Fence {
  private val TimeoutMs = 60000L
  private val mapper = new ObjectMapper()
  // by Spark folder, for the driver's own process
  private val fences = new ConcurrentHashMap[String, Fence]()
  // the one without a lock whose section this thread is in
  private val unlocked = new ThreadLocal[Fence]

  private def within[T](fence: Fence)(body: => T): T = {
    val before = unlocked.get
    unlocked.set(fence)
    try body finally unlocked.set(before)
  }

  /** Throws if the lease was lost since the section began; where it holds a lock it cannot be.
    *
    * For a sink that has just locked its output: who takes the job over locks it, too, before it asks what is
    * out.
    */
  def recheck(): Unit = Option(unlocked.get).foreach(_.check())

  def register(sparkFolder: String, lockFile: String, jobFile: String, token: String,
      hadoop: Configuration): Unit =
    fences.put(nameOf(new Path(sparkFolder), hadoop), new Fence(
      if (lockFile == null) null else Paths.get(lockFile).toAbsolutePath.normalize(),
      new Path(jobFile), token, hadoop))

  /** A lost fence stays: a query of the folder that is still winding down writes nothing either. */
  def unregister(sparkFolder: String, hadoop: Configuration): Unit = {
    val name = nameOf(new Path(sparkFolder), hadoop)
    fences.computeIfPresent(name, (_, fence) => if (fence.isLost) fence else null)
  }

  /** The fence around a Spark folder, if this process drives a job there. */
  def of(sparkFolder: Path, hadoop: => Configuration): Option[Fence] =
    if (fences.isEmpty) None else Option(fences.get(nameOf(sparkFolder, hadoop)))

  /** Until no process is in a section of the job: false if one still is after `timeoutMs`. */
  def await(lockFile: String, timeoutMs: Long): Boolean =
    try SectionLock.of(Paths.get(lockFile).toAbsolutePath.normalize()).held(timeoutMs)(true)
    catch { case _: SectionBusyException => false }

  private def nameOf(folder: Path, hadoop: Configuration): String =
    folder.getFileSystem(hadoop).makeQualified(folder).toString
}

class SectionBusyException(message: String) extends IllegalStateException(message)

/** A lock file, between processes and between the threads of this one. */
private final class SectionLock(file: LocalPath) {
  private val threads = new ReentrantLock()

  def held[T](timeoutMs: Long)(body: => T): T = {
    if (!threads.tryLock(timeoutMs, TimeUnit.MILLISECONDS)) throw busy
    try if (threads.getHoldCount > 1) body else inFile(timeoutMs)(body) finally threads.unlock()
  }

  // POSIX gives up all of a process's locks on a file when it closes any channel of it: so there
  // is one channel at a time, guarded by `threads`
  private def inFile[T](timeoutMs: Long)(body: => T): T = {
    Files.createDirectories(file.getParent)
    val channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)
    try {
      val until = System.nanoTime() + timeoutMs * 1000000L
      while (!tryLock(channel)) {
        if (System.nanoTime() >= until) throw busy
        Thread.sleep(20)
      }
      body
    } finally channel.close()
  }

  private def tryLock(channel: FileChannel): Boolean =
    try channel.tryLock() != null catch { case _: OverlappingFileLockException => false }

  private def busy = new SectionBusyException(s"another process holds $file")
}

private object SectionLock {
  private val locks = new ConcurrentHashMap[LocalPath, SectionLock]()
  def of(file: LocalPath): SectionLock = locks.computeIfAbsent(file, new SectionLock(_))
}
