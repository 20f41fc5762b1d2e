/** Owns the admin clients of this process, one for each set of client properties. */
package org.apache.spark.sql.headgate.brokers.kafka

import java.time.Duration
import java.util.concurrent.{ConcurrentHashMap, ExecutionException}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.admin.Admin
import org.apache.kafka.common.KafkaFuture

import org.apache.spark.sql.headgate.brokers.core.Sweeper
import org.apache.spark.sql.headgate.commit.OutputTakenException

private[headgate] object Admins {
  private final class Shared(val admin: Admin) { @volatile var usedAt: Long = System.nanoTime() }

  private lazy val sweeping = Sweeper.eachMinute(closeIdle)
  private val all = new ConcurrentHashMap[Map[String, String], Shared]()

  /** Throws a [[KafkaFailure]]; a client that gets no answer is not kept. */
  def use[T](client: Map[String, String])(body: Admin => T): T = {
    val servers = client.getOrElse("bootstrap.servers", "")
    try {
      val shared = all.computeIfAbsent(client, c => new Shared(Clients.admin(c)))
      sweeping
      shared.usedAt = System.nanoTime()
      body(shared.admin)
    } catch {
      case error: Exception if KafkaFailure.isInterrupt(error) =>
        // Spark knows only Java's own class, and takes any other for a failure of the query.
        throw new InterruptedException(error.getMessage)
      // what was found is no failure of the broker
      case taken: OutputTakenException => throw taken
      case error: Exception =>
        val failure = KafkaFailure.of(error, servers)
        if (failure.kind == KafkaFailure.Unreachable) Option(all.remove(client)).foreach(close)
        throw failure
    }
  }

  /** The value of a future, or what its call failed with. */
  def result[T](future: KafkaFuture[T]): T =
    try future.get() catch { case e: ExecutionException => throw e.getCause }

  private def closeIdle(before: Long): Unit =
    all.asScala.toSeq.foreach { case (client, shared) =>
      if (shared.usedAt - before < 0 && all.remove(client, shared)) close(shared)
    }

  private def close(shared: Shared): Unit = Sweeper.later(shared.admin.close(Duration.ZERO))
}
