/** Owns the producers of this process that no task uses at the moment. */
package org.apache.spark.sql.headgate.sinks.kafka

import java.lang.{Double => JDouble}
import java.time.Duration

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.headgate.brokers.core.Sweeper
import org.apache.spark.sql.headgate.brokers.kafka.{Clients, ProducerKey}
import org.apache.spark.sql.headgate.brokers.kafka.Clients.Producer

/** A producer with what it is known to have out.
  *
  * @param start of the query that it was made for: each start fences the producers of the others
  */
private[headgate] final class Held(val key: ProducerKey, val start: String, val producer: Producer) {

  /** The last batch of its task that is out, as far as this producer has seen. */
  var out: Long = -1L
  private[headgate] var idleSince = 0L
  private var lostAtStart = -1L

  /** Called when the producer has its epoch. */
  def started(): Unit = lostAtStart = connectionsLost

  /** Whether every request under this epoch was answered, so that none can still arrive.
    *
    * Kafka answers the requests of a connection in order, and its client gives a request up only
    * with the connection. One that was given up may reach the broker later, in the next transaction
    * of this epoch: an EndTxn would commit half of that. Only a new epoch keeps it out.
    */
  def allAnswered: Boolean = lostAtStart >= 0 && connectionsLost == lostAtStart

  private def connectionsLost: Long = Held.closed(producer).fold(-1L)(_.longValue)
}

private[headgate] object Held {
  private def closed(producer: Producer): Option[JDouble] =
    producer.metrics.asScala.collectFirst {
      case (name, metric) if name.name == "connection-close-total" && name.group == "producer-metrics" =>
        metric.metricValue
    }.collect { case count: JDouble => count }
}

/** A producer is taken out for use and put back after a commit; whatever failed never comes back. */
private[headgate] object Producers {
  private lazy val sweeping = Sweeper.eachMinute(closeIdle)

  private val idle = mutable.HashMap.empty[ProducerKey, List[Held]]

  /** One that this start of the query has made, and that has lost no request, or None; `again`: even
    * that one is not trusted.
    */
  def take(key: ProducerKey, start: String, again: Boolean): Option[Held] = {
    val found = synchronized {
      val waiting = idle.remove(key).getOrElse(Nil)
      if (key.transactionalId != null) waiting
      else {
        if (waiting.drop(1).nonEmpty) idle(key) = waiting.tail
        waiting.take(1)
      }
    }
    val usable = found.find(h => !again &&
      (key.transactionalId == null || (h.start == start && h.allAnswered)))
    found.filterNot(usable.contains).foreach(discard(_, abort = false))
    usable
  }

  def make(key: ProducerKey, start: String): Held =
    new Held(key, start, Clients.producer(key))

  def putBack(held: Held): Unit = {
    sweeping
    held.idleSince = System.nanoTime()
    val replaced = synchronized {
      val others = idle.getOrElse(held.key, Nil)
      if (held.key.transactionalId == null) { idle(held.key) = held :: others; Nil }
      else { idle(held.key) = List(held); others }
    }
    replaced.foreach(discard(_, abort = false))
  }

  /** Closes a producer without waiting for it; `abort`: it has a transaction that can be ended. */
  def discard(held: Held, abort: Boolean): Unit = Sweeper.later {
    // Readers of committed records wait for an open transaction: end it, if the broker is there.
    try if (abort) held.producer.abortTransaction()
    finally held.producer.close(Duration.ZERO)
  }

  def closeOf(start: String): Unit = closeThose(_.start == start)

  private def closeIdle(before: Long): Unit = closeThose(_.idleSince - before < 0)

  private def closeThose(chosen: Held => Boolean): Unit = {
    val closed = synchronized {
      val found = idle.values.flatten.filter(chosen).toSet
      idle.mapValuesInPlace((_, held) => held.filterNot(found)).filterInPlace((_, held) => held.nonEmpty)
      found
    }
    closed.foreach(discard(_, abort = false))
  }
}
