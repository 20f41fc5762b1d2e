/** Owns the producers of this process. */
package org.apache.spark.sql.headgate.sinks.pulsar

import java.util.concurrent.{CompletableFuture, TimeUnit}

import scala.collection.mutable
import scala.util.control.NonFatal

import org.apache.pulsar.client.api.{CompressionType, Producer, Schema}
import org.apache.pulsar.client.api.PulsarClientException.ProducerBusyException
import org.apache.pulsar.client.impl.ProducerImpl

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.sql.headgate.brokers.core.{BrokerFailure, Sweeper}
import org.apache.spark.sql.headgate.brokers.pulsar.{Clients, PulsarAccess, PulsarFailure, SharedClient}

/** @param name null for a producer of at-least-once delivery, which any task may take */
private[headgate] case class ProducerKey(access: PulsarAccess, topic: String, name: String)

/** An open producer.
  *
  * @param start of the query that it was made for
  */
private[headgate] final class Held(
    val key: ProducerKey,
    val start: String,
    shared: SharedClient,
    val producer: Producer[Array[Byte]]) {

  /** The last sequence id that is out. */
  var out: Long = producer.getLastSequenceId
  private[headgate] var idleSince = 0L

  /** How large a message the broker takes. */
  def maxBytes: Int = producer match {
    case p: ProducerImpl[_] => p.getConnectionHandler.getMaxMessageSize
    case _ => Held.UsualMaxBytes // of several partitions; the client itself knows each one's
  }

  /** Rows that wait in it are forgotten; what is on its way to the broker is not taken back. */
  def close(): Unit =
    try producer.closeAsync().get(Held.CloseMs, TimeUnit.MILLISECONDS)
    catch {
      // of a task that is being killed: the request has gone out
      case _: InterruptedException => Thread.currentThread().interrupt()
      case NonFatal(_) => // the connection is gone, and the producer with it
    } finally Clients.release(shared)
}

private[headgate] object Held {
  private val CloseMs = 5000L
  private val UsualMaxBytes = 5 << 20
}

/** A producer is taken out for use and put back after a commit; whatever failed never comes back.
  *
  * A name can be connected only once. So producers with names are kept only where all tasks run in
  * one process: elsewhere the next batch's task may run on another executor, and would find its name
  * taken by an idle producer here.
  */
private[headgate] object Producers {

  /** An executor that has died may be connected for some time, in the broker's eyes. */
  private val BusyMs = 60000L
  private val AgainMs = 200L

  private val idle = mutable.HashMap.empty[ProducerKey, List[Held]]
  private lazy val sweeping = Sweeper.eachMinute(before => closeThose(_.idleSince - before < 0))

  /** @param again whether an earlier attempt of the task was made: nothing that is kept is trusted */
  def take(key: ProducerKey, start: String, again: Boolean): Held = {
    val (usable, others) = synchronized {
      val waiting = idle.remove(key).getOrElse(Nil)
      val found = waiting.find(h => !again && (h.start == start || key.name == null))
      val rest = waiting.filterNot(found.contains)
      if (key.name == null && rest.nonEmpty) idle(key) = rest
      (found, if (key.name == null) Nil else rest)
    }
    others.foreach(_.close())
    usable.getOrElse(open(key, start))
  }

  def putBack(held: Held): Unit = {
    sweeping
    if (held.key.name != null && !isLocal) held.close()
    else {
      held.idleSince = System.nanoTime()
      synchronized { idle(held.key) = held :: idle.getOrElse(held.key, Nil) }
    }
  }

  def open(key: ProducerKey, start: String): Held = {
    val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(BusyMs)
    def attempt(): Held =
      try create(key, start)
      catch {
        case _: ProducerBusyException if System.nanoTime() < until =>
          closeIdle(key)
          Thread.sleep(AgainMs)
          attempt()
      }
    attempt()
  }

  /** A task that ends after its query has ended puts its producer back behind closeOf's back. */
  private def closeIdle(key: ProducerKey): Unit =
    synchronized(idle.remove(key).getOrElse(Nil)).foreach(_.close())

  /** The last sequence id of each, -1 for a name that the broker does not know. */
  def lastSequenceIds(keys: Seq[ProducerKey]): Seq[Long] = keys.map { key =>
    val held =
      try open(key, "")
      catch { case e: Exception if PulsarFailure.isPulsars(e) =>
        throw PulsarFailure.of(e, key.access.url, key.topic) }
    try held.out finally held.close()
  }

  def closeOf(start: String): Unit = closeThose(h => h.start == start && h.key.name != null)

  private def closeThose(chosen: Held => Boolean): Unit = {
    val closed = synchronized {
      val found = idle.values.flatten.filter(chosen).toSet
      idle.mapValuesInPlace((_, held) => held.filterNot(found)).filterInPlace((_, held) => held.nonEmpty)
      found
    }
    closed.foreach(held => Sweeper.later(held.close()))
  }

  private def isLocal: Boolean =
    Option(SparkEnv.get).forall(_.executorId == SparkContext.DRIVER_IDENTIFIER)

  private def create(key: ProducerKey, start: String): Held = {
    val shared = Clients.acquire(key.access)
    var making: CompletableFuture[Producer[Array[Byte]]] = null
    try {
      val builder = shared.client.newProducer(Schema.BYTES).topic(key.topic)
        .compressionType(CompressionType.LZ4)
        .enableBatching(true).enableChunking(false)
        .blockIfQueueFull(true).maxPendingMessages(10000)
      if (key.name == null) {
        builder.sendTimeout(Lane.PatienceMs.toInt, TimeUnit.MILLISECONDS)
          .batchingMaxPublishDelay(10, TimeUnit.MILLISECONDS)
          .batchingMaxMessages(1000).batchingMaxBytes(256 << 10)
      } else {
        // Lane makes the entries, and never has two of them on their way: the client must send none
        // by itself, and give none up.
        builder.producerName(key.name)
          .sendTimeout(0, TimeUnit.SECONDS)
          .batchingMaxPublishDelay(1, TimeUnit.DAYS)
          .batchingMaxMessages(1 << 20).batchingMaxBytes(0)
      }
      making = builder.createAsync()
      new Held(key, start, shared, Clients.result(making, 2 * Clients.PatienceMs))
    } catch {
      case error: Throwable =>
        // One that comes after all has nobody, and would keep the name.
        if (making != null) making.thenAccept(late => late.closeAsync())
        Clients.release(shared)
        throw BrokerFailure.innermost(error)
    }
  }
}
