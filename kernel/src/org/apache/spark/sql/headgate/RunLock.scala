package org.apache.spark.sql.headgate

import java.nio.channels.{FileChannel, FileLock, OverlappingFileLockException}
import java.nio.file.{Files, Path, Paths, StandardOpenOption}
import java.util.concurrent.ConcurrentHashMap

/**
 * A lock of the operating system that this JVM holds while it runs a job.
 *
 * When the Python driver is killed its JVM lives on for a moment and could still commit a batch;
 * the next driver waits here until that JVM is really gone.
 */
object RunLock {
  private val held = new ConcurrentHashMap[Path, FileLock]()

  /** True if the lock is ours now; false if another process still held it after `timeoutMs`. */
  def hold(path: String, timeoutMs: Long): Boolean = {
    val file = Paths.get(path).toAbsolutePath.normalize()
    if (held.containsKey(file)) return true
    Files.createDirectories(file.getParent)
    val channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)
    val until = System.nanoTime() + timeoutMs * 1000000L
    while (true) {
      val lock = try channel.tryLock() catch { case _: OverlappingFileLockException => null }
      if (lock != null) { held.put(file, lock); return true }
      if (System.nanoTime() >= until) { channel.close(); return false }
      Thread.sleep(50)
    }
    false
  }

  def release(path: String): Unit = {
    val lock = held.remove(Paths.get(path).toAbsolutePath.normalize())
    if (lock != null) lock.channel().close()
  }
}
