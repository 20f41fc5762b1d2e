/** Owns the driver's side of a job's Pulsar sinks. */
package org.apache.spark.sql.headgate.sinks.pulsar

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.collection.mutable

import org.apache.spark.sql.headgate.brokers.pulsar.{Clients, PulsarFailure, PulsarTopics}
import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.sinks.core.{
  BatchWrite, JobSinks, JobSpec, SinkMessage, SinkSpec, TaskPlan}
import org.apache.spark.sql.headgate.spark.{RunningBatch, RunningQuery}

private[headgate] final class PulsarSinks(job: JobSpec, sinks: Seq[SinkSpec]) extends JobSinks {
  import PulsarSinks._

  private val options = sinks.map(s => s.number -> s.options.asInstanceOf[PulsarOptions]).toMap

  override def commitInTasks: Boolean = true

  override def prepare(batch: BatchWrite): TaskPlan = {
    val query = RunningQuery.of(batch.session).getOrElse(
      throw new IllegalStateException("a Pulsar sink is written by streaming queries only"))
    val running = RunningBatch.of(batch.session).getOrElse(
      throw new IllegalStateException("a Pulsar sink is written in micro-batches only"))
    val start = startOf(query)
    val plans = sinks.map(s => s.number -> planOf(s, start, running.id, batch))
    PulsarPlans(job.run, query.runId.toString, plans.toMap, running.isFirst, batch.timeZone)
  }

  private def planOf(sink: SinkSpec, start: Started, number: Long, batch: BatchWrite): PulsarPlan = {
    val of = options(sink.number)
    val plan = PulsarPlan(PulsarPlan.names(job, sink.name), 0, of, batch.structs(sink.number))
    val due = start.lookedAt.get(sink.number).forall(System.nanoTime() - _ > LookNanos)
    lazy val found = {
      start.lookedAt(sink.number) = System.nanoTime()
      try Clients.use(of.access)(PulsarTopics.partitions(_, of.topic))
      catch { case f: PulsarFailure => throw named(f, plan) }
    }
    // At each start, also where the record tells: a topic that is gone fails the start at once, with a plain sentence.
    if (due) found
    if (!of.exactlyOnce) plan
    else {
      val layout = new Layouts(job.journal, sink.name).of(number, batch.tasks, due, () => found)
      def other = found < layout.partitions || layout.partitions == 0 && found > 0
      if (due && other) {
        throw new PulsarFailure(PulsarFailure.Other, plan.shown, of.access.url,
          s"the topic has $found partitions, but ${layout.partitions} when the run wrote to it: was " +
            "it created anew? Start from a snapshot (--from) or with --fresh, as a new run", null)
      }
      plan.copy(partitions = layout.partitions)
    }
  }

  /** By sink, the last batch of the run that any task has begun to write.
    *
    * The broker keeps a number for a producer and nothing more: there is no room for a fingerprint.
    */
  override def markers(): Map[Int, Seq[Marker]] = sinks.map { sink =>
    val of = options(sink.number)
    val layouts =
      if (!of.exactlyOnce || job.journal.isEmpty) Nil
      else new Layouts(job.journal, sink.name).read()
    val last = if (layouts.isEmpty) -1L else {
      val names = PulsarPlan.names(job, sink.name)
      // A topic that has grown since is known by its new number, which no task has used.
      val partitions = layouts.map(_.partitions).max
      val keys = for {
        task <- 0 until layouts.map(_.tasks).max
        lane <- 0 until math.max(1, partitions)
      } yield ProducerKey(
        of.access, PulsarTopics.partition(of.topic, partitions, lane), names + task)
      SequenceId.batchOf(Producers.lastSequenceIds(keys).max)
    }
    sink.number -> (if (last < 0) Nil else Seq(Marker(last)))
  }.toMap

  /** Nothing: the tasks have committed. */
  override def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit = ()
}

private object PulsarSinks {

  /** So often a topic is looked at: it may have grown. */
  val LookNanos = TimeUnit.SECONDS.toNanos(10)

  /** When each sink's topic was looked at last, in one start of a query. */
  final class Started { val lookedAt = mutable.HashMap.empty[Int, Long] }

  private val started = new ConcurrentHashMap[UUID, Started]()

  def startOf(query: RunningQuery): Started = Option(started.get(query.runId)).getOrElse {
    val made = new Started
    started.put(query.runId, made)
    query.onEnd {
      started.remove(query.runId)
      Producers.closeOf(query.runId.toString)
      Lane.forget(query.runId.toString)
    }
    made
  }

  /** The same failure with the topic's name as people know it. */
  def named(f: PulsarFailure, plan: PulsarPlan): PulsarFailure =
    if (f.kind == PulsarFailure.TopicMissing) PulsarFailure.missing(plan.shown, f.servers, f)
    else new PulsarFailure(f.kind, plan.shown, f.servers, f.text, f)
}
