/** Owns what is done beside the tasks: waiting with a limit, and closing clients. */
package org.apache.spark.sql.headgate.kafka

import java.util.concurrent.{ExecutionException, Executors, ThreadFactory, TimeUnit}
import java.util.concurrent.{TimeoutException => JTimeout}

import scala.util.control.NonFatal

import org.apache.kafka.common.errors.TimeoutException

private[kafka] object Sweeper {
  private val IdleMinutes = 5L

  private val threads: ThreadFactory = (work: Runnable) => {
    val thread = new Thread(work, "headgate-kafka-sweeper")
    thread.setDaemon(true)
    thread
  }
  private val working = Executors.newCachedThreadPool(threads)

  private lazy val sweeping = Executors.newSingleThreadScheduledExecutor(threads)
    .scheduleWithFixedDelay(() => sweep(), 1, 1, TimeUnit.MINUTES)

  /** From the first client on. */
  def start(): Unit = sweeping

  /** A close may take its time, and a task that is being killed has none. */
  def later(close: => Unit): Unit =
    working.execute(() => try close catch { case NonFatal(_) => }) // nobody has the client any more

  /** For calls of Kafka's clients that may wait for ever; the one that waits too long goes on. */
  def within(ms: Long, what: String)(body: => Unit): Unit = {
    val running = working.submit((() => body): Runnable)
    try running.get(ms, TimeUnit.MILLISECONDS)
    catch {
      case _: JTimeout => throw new TimeoutException(s"$what took more than $ms ms")
      case e: ExecutionException => throw e.getCause
    }
  }

  private def sweep(): Unit = try {
    val before = System.nanoTime() - TimeUnit.MINUTES.toNanos(IdleMinutes)
    Producers.closeIdle(before)
    Admins.closeIdle(before)
  } catch { case NonFatal(_) => } // else the timer would end
}
