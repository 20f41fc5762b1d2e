/** Owns the Pulsar sinks' part of a task. */
package org.apache.spark.sql.headgate.sinks.pulsar

import java.util.concurrent.atomic.AtomicReference

import scala.collection.mutable

import org.apache.pulsar.client.api.MessageId

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.brokers.core.BrokerFailure
import org.apache.spark.sql.headgate.brokers.pulsar.{Clients, PulsarFailure, PulsarTopics}
import org.apache.spark.sql.headgate.commit.{Marker, SinkAheadException}
import org.apache.spark.sql.headgate.sinks.core.{SinkWriter, TaskPlace, TaskSinks}
import org.apache.spark.sql.headgate.testing.Failpoints

private[headgate] final class PulsarTasks(plans: PulsarPlans, task: Int, batch: Long)
  extends TaskSinks {

  private val retry = TaskPlace.isRetry
  private val exact = mutable.ArrayBuffer.empty[ExactWriter]
  private val others = mutable.ArrayBuffer.empty[PlainWriter]

  override def writer(sink: Int): SinkWriter = {
    val plan = plans.sinks(sink)
    val maker = new MessageMaker(plan, plans.timeZone)
    if (plan.options.exactlyOnce) {
      if (exact.isEmpty) reach(Failpoints.BeforeTransaction)
      val made = new ExactWriter(
        plan, plan.names + task, plans.start, batch, retry, plans.mayBeOut, maker)
      exact += made
      made
    } else {
      val made = new PlainWriter(plan, plans.start, maker)
      others += made
      made
    }
  }

  override def commit(): Unit = {
    if (exact.nonEmpty) {
      // the last rows still wait for their entries, so a crash here leaves a part of them out
      reach(Failpoints.InTransaction)
      exact.foreach(_.push())
      exact.foreach(_.commit())
      reach(Failpoints.AfterTransaction)
    }
    others.foreach(_.commit())
  }

  override def abort(): Unit = (exact ++ others).foreach(_.abort())

  private def reach(point: String): Unit = Failpoints.reachInTask(plans.run, point, batch, retry)
}

/** Whatever fails closes the writer's producers, before the task fails: then nothing more is sent. */
private[headgate] abstract class PulsarWriter(plan: PulsarPlan) extends SinkWriter {
  override def finish(): Unit = () // commits last of all

  protected def attempt[T](body: => T): T =
    try body
    catch {
      case error: Exception =>
        abort()
        throw (if (PulsarFailure.isPulsars(error)) explained(error) else error)
    }

  private def explained(error: Exception): PulsarFailure = {
    val failure = PulsarFailure.of(error, plan.options.access.url, plan.shown)
    // No answer may have another cause than the broker: a topic that was deleted meanwhile.
    if (failure.kind != PulsarFailure.Unreachable) failure
    else try {
      Clients.use(plan.options.access)(PulsarTopics.partitions(_, plan.options.topic))
      failure
    } catch {
      case why: PulsarFailure if why.kind == PulsarFailure.TopicMissing =>
        PulsarFailure.missing(plan.shown, plan.options.access.url, failure)
      case _: PulsarFailure => failure
    }
  }
}

/** Numbers the rows in the order in which they come, which every attempt repeats. */
private[headgate] final class ExactWriter(
    plan: PulsarPlan,
    name: String,
    start: String,
    batch: Long,
    retry: Boolean,
    mayBeOut: Boolean,
    maker: MessageMaker)
  extends PulsarWriter(plan) {

  private val lanes = new Array[Lane](plan.lanes)
  private var rows = 0L

  override def write(row: InternalRow): Unit = attempt {
    val message = maker.message(row)
    val number = Routing.of(message, rows, lanes.length)
    if (lanes(number) == null) {
      val key = ProducerKey(plan.options.access, plan.lane(number), name)
      lanes(number) = new Lane(plan, key, start, retry)
      refuseOther(lanes(number))
    }
    lanes(number).send(SequenceId.of(batch, rows), message)
    rows += 1
  }

  /** Rows of a batch that nobody can have run before cannot be out, and none of a later one: the
    * numbers are another's, from a home that this one is a copy of.
    */
  private def refuseOther(lane: Lane): Unit = {
    val found = SequenceId.batchOf(lane.outBefore)
    if (found > batch || found == batch && !mayBeOut && !retry) {
      throw new SinkAheadException(plan.shown, Marker(found), batch)
    }
  }

  private def open: Seq[Lane] = lanes.toSeq.filter(_ != null)

  def push(): Unit = attempt(open.foreach(_.push()))
  def commit(): Unit = attempt(open.foreach(_.commit()))
  override def abort(): Unit = open.foreach(_.abort())
}

/** At least once: any producer will do, and the client sends as it likes. */
private[headgate] final class PlainWriter(plan: PulsarPlan, start: String, maker: MessageMaker)
  extends PulsarWriter(plan) {

  private val failed = new AtomicReference[Throwable]()
  private var held: Held = _

  override def write(row: InternalRow): Unit = attempt {
    if (held == null) {
      held = Producers.take(ProducerKey(plan.options.access, plan.options.topic, null), start, again = false)
    }
    throwFailed()
    maker.message(row).on(held.producer.newMessage()).sendAsync()
      .whenComplete((_: MessageId, error: Throwable) =>
        if (error != null) failed.compareAndSet(null, BrokerFailure.innermost(error)))
  }

  def commit(): Unit = if (held != null) attempt {
    Clients.result(held.producer.flushAsync(), Lane.PatienceMs)
    throwFailed()
    Producers.putBack(held)
    held = null
  }

  override def abort(): Unit = if (held != null) {
    val closing = held
    held = null
    closing.close()
  }

  private def throwFailed(): Unit = if (failed.get != null) throw failed.get
}
