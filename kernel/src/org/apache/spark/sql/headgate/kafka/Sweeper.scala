/** Owns what is done beside the tasks: closing clients, those at once that failed, idle ones later. */
package org.apache.spark.sql.headgate.kafka

import java.util.concurrent.{Executors, ThreadFactory, TimeUnit}

import scala.util.control.NonFatal

private[kafka] object Sweeper {
  private val IdleMinutes = 5L

  private val threads: ThreadFactory = (work: Runnable) => {
    val thread = new Thread(work, "headgate-kafka-sweeper")
    thread.setDaemon(true)
    thread
  }
  private val closing = Executors.newCachedThreadPool(threads)

  private lazy val sweeping = Executors.newSingleThreadScheduledExecutor(threads)
    .scheduleWithFixedDelay(() => sweep(), 1, 1, TimeUnit.MINUTES)

  /** From the first client on. */
  def start(): Unit = sweeping

  /** A close may take its time, and a task that is being killed has none. */
  def later(close: => Unit): Unit =
    closing.execute(() => try close catch { case NonFatal(_) => }) // nobody has the client any more

  private def sweep(): Unit = try {
    val before = System.nanoTime() - TimeUnit.MINUTES.toNanos(IdleMinutes)
    Producers.closeIdle(before)
    Admins.closeIdle(before)
  } catch { case NonFatal(_) => } // else the timer would end
}
