/** Owns a group's part of a task: its transaction. */
package org.apache.spark.sql.headgate.sinks.kafka

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Collections
import java.util.concurrent.{ExecutionException, Future, TimeUnit}
import java.util.concurrent.atomic.AtomicReference

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata
import org.apache.kafka.clients.producer.{Callback, ProducerRecord, RecordMetadata}
import org.apache.kafka.common.TopicPartition

import org.apache.spark.sql.headgate.brokers.core.Sweeper
import org.apache.spark.sql.headgate.brokers.kafka.{
  Admins, Clients, KafkaFailure, Patience, ProducerKey, Topics}
import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.testing.Failpoints
import org.apache.spark.sql.headgate.brokers.kafka.Clients.Producer

/** Sends the rows of one task for all sinks of a group, in one transaction that begins at the first.
  *
  * 1. Take a producer: one that has written the batch before needs to ask nothing, since whoever
  *    wrote this batch meanwhile has fenced it. Another reads the marker, a new one after
  *    `initTransactions`, which ends what an earlier attempt left open. One that has lost a
  *    connection is not taken: see [[Held.allAnswered]]. With the marker comes whose the topics
  *    are: who takes them over says so first and then fences, so one of the two is always met.
  * 2. If the marker shows this batch, the rows are out: drop them. If it shows the batch's number with
  *    other offsets, or a later batch, the home is older than the topics: fail.
  * 3. Else send them, then the marker, and commit. Whatever fails closes the producer and the task. The
  *    marker's half that is the group's offset goes as soon as the transaction has begun, beside the work
  *    on rows: it takes two round trips, and belongs to the transaction whenever it comes.
  *
  * @param mark what the task leaves when its rows are out
  * @param retry whether an earlier attempt of this task in this batch was made
  */
private[headgate] final class GroupTask(plan: GroupPlan, task: Int, mark: Marker, retry: Boolean) {
  import mark.batch
  import plan.group

  private val key = ProducerKey(group.client,
    if (group.exactlyOnce) group.transactionalId(task) else null, group.transactionTimeoutMs,
    plan.batchBytes)
  private val failed = new AtomicReference[(Exception, String)]()
  private var held: Held = _
  private var begun = false
  private var begunAt = 0L
  private var inTransaction = false
  private var rows = 0L
  private var offset: Future[_] = _

  /** Called before each row; false if the rows are out already, and not to be sent. */
  def opened(): Boolean = {
    if (!begun) attempt(begin())
    held != null
  }

  /** Throws what an earlier record failed with, as soon as that is known. */
  def send(record: ProducerRecord[Array[Byte], Array[Byte]], done: Callback): Unit =
    try {
      throwFailed()
      held.producer.send(record, done)
      rows += 1
    } catch { case error: Exception => fail(error) }

  /** Remembers the first failure of a record, on whatever thread it comes. */
  def callback(topic: String): Callback = (_: RecordMetadata, error: Exception) =>
    if (error != null) failed.compareAndSet(null, (error, topic))

  def commit(): Unit = if (held != null) attempt {
    reach(Failpoints.BeforeMarker)
    // with the rows that are on their way: a round trip of its own would be one more
    if (group.exactlyOnce) sendMarker()
    flush(held.producer)
    throwFailed()
    if (group.exactlyOnce) commitTransaction()
    held.out = batch
    Producers.putBack(held)
    held = null
  }

  /** Never waits and never throws. */
  def abort(): Unit = drop(fatal = false)

  private def begin(): Unit = {
    begun = true
    val found = if (group.exactlyOnce) plan.markers.get(task) else None
    if (!isOut(found)) {
      val kept = Producers.take(key, plan.start, retry)
      held = kept.getOrElse(Producers.make(key, plan.start))
      if (group.exactlyOnce) beginTransaction(isNew = kept.isEmpty)
      begunAt = System.nanoTime()
    }
  }

  private def isOut(found: Option[Marker]): Boolean = found.exists(_.holds(mark, group.shown))

  private def beginTransaction(isNew: Boolean): Unit = {
    if (isNew) {
      held.producer.initTransactions()
      held.started()
    }
    val isThere = (isNew || held.out != batch - 1) &&
      isOut(Admins.use(group.client)(Markers.ofTask(_, group, plan.markerPartition, task)))
    if (isThere || held.out >= batch) {
      Producers.putBack(held)
      held = null
    } else {
      reach(Failpoints.BeforeTransaction)
      held.producer.beginTransaction()
      inTransaction = true
      offset = Sweeper.working.submit(offsetInto(held.producer))
      reach(Failpoints.TransactionBegun)
    }
  }

  /** When a topic of a transaction is deleted, the producer asks for it for ever, and the records'
    * own timeout does not count meanwhile (Sender.runOnce).
    */
  private def flush(producer: Producer): Unit =
    Patience.within(Clients.deliveryTimeoutMs(group.client) + GroupTask.SlackMs, "sending records") {
      producer.flush()
    }

  private def offsetInto(producer: Producer): Runnable = () =>
    producer.sendOffsetsToTransaction(
      Collections.singletonMap(new TopicPartition(group.markerTopic, plan.markerPartition),
        Markers.offset(mark)),
      new ConsumerGroupMetadata(group.consumerGroup(task)))

  private def sendMarker(): Unit = {
    val marker = new ProducerRecord[Array[Byte], Array[Byte]](group.markerTopic,
      plan.markerPartition, group.markerKey(task).getBytes(UTF_8), Markers.record(mark, rows))
    held.producer.send(marker, callback(group.markerTopic))
    try offset.get()
    catch { case failure: ExecutionException => throw failure.getCause }
  }

  private def commitTransaction(): Unit = {
    reach(Failpoints.InTransaction)
    held.producer.commitTransaction()
    inTransaction = false
    reach(Failpoints.AfterTransaction)
  }

  private def reach(point: String): Unit = Failpoints.reachInTask(group.run, point, batch, retry)

  private def throwFailed(): Unit = if (failed.get != null) throw failed.get._1

  private def attempt(body: => Unit): Unit =
    try body catch { case error: Exception => fail(error) }

  private def fail(error: Exception): Nothing = {
    // A record's failure is the cause; what the producer says later is its effect.
    val (cause, topic) = Option(failed.get).getOrElse((error, null))
    val shown = if (KafkaFailure.isKafkas(cause)) explained(cause, topic) else error
    drop(fatal = KafkaFailure.isFatal(shown))
    throw shown
  }

  private def drop(fatal: Boolean): Unit = if (held != null) {
    Producers.discard(held, abort = inTransaction && !fatal)
    held = null
  }

  private def explained(error: Exception, topic: String): KafkaFailure = {
    val failure = KafkaFailure.of(error, group.servers, topic)
    val age = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begunAt)
    if (failure.kind == KafkaFailure.Fenced && inTransaction && age >= group.transactionTimeoutMs) {
      new KafkaFailure(KafkaFailure.TimedOut, topic, group.servers,
        s"the broker ended the transaction of task $task in batch $batch, which took $age ms: raise " +
          s"the sink's transaction_timeout (${group.transactionTimeoutMs} ms), or make batches smaller",
        error)
    } else if (failure.kind == KafkaFailure.Unreachable && begunAt != 0) whyNoAnswer(failure)
    else failure
  }

  /** A timeout may have another cause than the broker: a topic that was deleted meanwhile. */
  private def whyNoAnswer(failure: KafkaFailure): KafkaFailure = {
    val markers = if (group.exactlyOnce) Seq(group.markerTopic) else Nil
    val topics = group.sinks.values.toSeq.distinct.sorted ++ markers
    try {
      val gone = Admins.use(group.client)(a => topics.find(Topics.describe(a, _).isEmpty))
      gone.map(KafkaFailure.missing(_, group.servers, failure)).getOrElse(failure)
    } catch { case why: KafkaFailure => why }
  }
}

private[headgate] object GroupTask {
  private val SlackMs = 2000L
}
