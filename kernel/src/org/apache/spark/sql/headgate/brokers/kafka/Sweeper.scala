/** Owns what the Kafka sink does beside its tasks: waiting with a limit, and closing clients. */
package org.apache.spark.sql.headgate.brokers.kafka

import java.util.concurrent.{ExecutionException, TimeUnit}
import java.util.concurrent.{TimeoutException => JTimeout}

import org.apache.kafka.common.errors.TimeoutException

import org.apache.spark.sql.headgate.brokers.core.{Sweeper => Shared}
import org.apache.spark.sql.headgate.sinks.kafka.Producers

private[headgate] object Sweeper {
  private lazy val sweeping = Shared.eachMinute { before =>
    Producers.closeIdle(before)
    Admins.closeIdle(before)
  }

  /** From the first client on. */
  def start(): Unit = sweeping

  def later(close: => Unit): Unit = Shared.later(close)

  /** For calls of Kafka's clients that may wait for ever; the one that waits too long goes on. */
  def within(ms: Long, what: String)(body: => Unit): Unit = {
    val running = Shared.working.submit((() => body): Runnable)
    try running.get(ms, TimeUnit.MILLISECONDS)
    catch {
      case _: JTimeout => throw new TimeoutException(s"$what took more than $ms ms")
      case e: ExecutionException => throw e.getCause
    }
  }
}
