/** Owns waiting with a limit for calls of Kafka's clients that have none. */
package org.apache.spark.sql.headgate.brokers.kafka

import java.util.concurrent.{ExecutionException, TimeUnit}
import java.util.concurrent.{TimeoutException => JTimeout}

import org.apache.kafka.common.errors.TimeoutException

import org.apache.spark.sql.headgate.brokers.core.Sweeper

private[headgate] object Patience {
  /** For calls of Kafka's clients that may wait for ever; the one that waits too long goes on. */
  def within(ms: Long, what: String)(body: => Unit): Unit = {
    val running = Sweeper.working.submit((() => body): Runnable)
    try running.get(ms, TimeUnit.MILLISECONDS)
    catch {
      case _: JTimeout => throw new TimeoutException(s"$what took more than $ms ms")
      case e: ExecutionException => throw e.getCause
    }
  }
}
