/** Owns sending a task's rows to one partition of a topic, exactly once. */
package org.apache.spark.sql.headgate.sinks.pulsar

import java.util.concurrent.{CompletableFuture, ConcurrentHashMap, TimeUnit, TimeoutException}

import org.apache.pulsar.client.api.MessageId

import org.apache.spark.sql.headgate.brokers.pulsar.{Clients, PulsarFailure}

/** The rows go out in entries, and an entry only when the one before has been acknowledged.
  *
  * The broker remembers the highest sequence id of each producer name and drops what is not above
  * it. So if one entry failed and the next got through, a replay of the first would be dropped: rows
  * would be lost. (Pulsar refuses a single entry if it is larger than a limit of the topic, say.)
  * While an entry is on its way the next one is filled, so the task seldom waits.
  *
  * The broker reports what an earlier attempt has out when the producer is opened: those rows are
  * not sent again. That is also why an entry never has rows that are out beside rows that are not,
  * of which the broker would drop all.
  */
private[headgate] final class Lane(plan: PulsarPlan, val key: ProducerKey, start: String, again: Boolean) {
  private var held = Producers.take(key, start, again)
  val outBefore: Long = held.out
  private val maxBytes = held.maxBytes

  private var filling: CompletableFuture[MessageId] = _
  private var rows = 0
  private var bytes = 0L
  private var onItsWay: CompletableFuture[MessageId] = _
  private var lastSent = -1L

  def send(sequenceId: Long, message: Outgoing): Unit = if (sequenceId > outBefore) {
    if (message.bytes > maxBytes) throw tooLarge(message.bytes)
    if (rows > 0 && bytes + message.bytes > Lane.EntryBytes) push()
    // One as large as that may be sent by the client at once.
    if (message.bytes > Lane.EntryBytes) settle()
    filling = message.on(held.producer.newMessage()).sequenceId(sequenceId).sendAsync()
    rows += 1
    bytes += message.bytes
    lastSent = sequenceId
    if (rows >= plan.options.entryRows || bytes > Lane.EntryBytes) push()
    else if (onItsWay != null && onItsWay.isDone) settle()
  }

  /** Sends what is there, when the entry before is out. */
  def push(): Unit = if (rows > 0) {
    settle()
    held.producer.flushAsync() // its failure is that of the last message
    onItsWay = filling
    filling = null
    rows = 0
    bytes = 0
  }

  /** Waits until the entry that is on its way is out. */
  def settle(): Unit = if (onItsWay != null) {
    try Clients.result(onItsWay, Lane.PatienceMs)
    catch {
      case e: TimeoutException =>
        throw new TimeoutException(s"no acknowledgement for ${Lane.PatienceMs / 1000} seconds")
    }
    onItsWay = null
  }

  /** All rows are out: looks once whether the broker remembers it, and keeps the producer. */
  def commit(): Unit = {
    push()
    settle()
    if (lastSent >= 0) {
      held.out = lastSent
      prove()
    }
    Producers.putBack(held)
    held = null
  }

  /** The broker tells what it remembers only when a producer is opened. Not each time: it remembers
    * for a whole topic, or not at all.
    */
  private def prove(): Unit = if (!Lane.proved.contains((start, key.topic))) {
    held.close()
    held = null
    held = Producers.open(key, start)
    if (held.out != lastSent) {
      throw new PulsarFailure(PulsarFailure.NotDeduplicated, plan.shown, plan.options.access.url,
        s"after the row with sequence id $lastSent the broker remembers ${held.out} for the " +
          s"producer ${key.name}", null)
    }
    Lane.proved.add((start, key.topic))
  }

  def abort(): Unit = if (held != null) {
    val closing = held
    held = null
    closing.close()
  }

  private def tooLarge(size: Long): PulsarFailure =
    new PulsarFailure(PulsarFailure.TooLarge, plan.shown, plan.options.access.url,
      s"a record has $size bytes, the broker takes $maxBytes", null)
}

private[headgate] object Lane {

  /** A broker that acknowledges nothing for so long is given up. */
  val PatienceMs: Long = TimeUnit.MINUTES.toMillis(2)

  private val EntryBytes = 128 << 10

  /** Topics whose broker was seen to remember, by start of a query. */
  private val proved = ConcurrentHashMap.newKeySet[(String, String)]()

  def forget(start: String): Unit = proved.removeIf(_._1 == start)
}
