/** Owns what is done beside the tasks: closing clients that are done with, or idle for long. */
package org.apache.spark.sql.headgate.brokers.core

import java.util.concurrent.{ConcurrentHashMap, ExecutorService, Executors, ThreadFactory, TimeUnit}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

private[headgate] object Sweeper {
  private val IdleMinutes = 5L

  private val threads: ThreadFactory = (work: Runnable) => {
    val thread = new Thread(work, "headgate-sweeper")
    thread.setDaemon(true)
    thread
  }
  private val sweeps = ConcurrentHashMap.newKeySet[Long => Unit]()

  val working: ExecutorService = Executors.newCachedThreadPool(threads)

  private lazy val sweeping = Executors.newSingleThreadScheduledExecutor(threads)
    .scheduleWithFixedDelay(() => sweep(), 1, 1, TimeUnit.MINUTES)

  /** Calls `closeIdle` each minute with the time (in nanos) before which an idle client is closed. */
  def eachMinute(closeIdle: Long => Unit): Unit = {
    sweeps.add(closeIdle)
    sweeping
  }

  /** A close may take its time, and a task that is being killed has none. */
  def later(close: => Unit): Unit =
    working.execute(() => try close catch { case NonFatal(_) => }) // nobody has the client any more

  private def sweep(): Unit = {
    val before = System.nanoTime() - TimeUnit.MINUTES.toNanos(IdleMinutes)
    // one that fails ends neither the others nor the timer
    sweeps.asScala.foreach(close => try close(before) catch { case NonFatal(_) => })
  }
}
