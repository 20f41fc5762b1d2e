/** Owns the driver's side of a job's Pulsar sinks. */
package org.apache.spark.sql.headgate.sinks.pulsar

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.collection.mutable

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.headgate.brokers.pulsar.{Clients, PulsarFailure, PulsarTopics}
import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.sinks.core.{JobSpec, SinkSpec}
import org.apache.spark.sql.headgate.spark.{QueryEnd, RunningBatch}

/** Called by the sink only if there is a Pulsar sink: the classes of Pulsar's client may be missing. */
object PulsarDriver {

  /** So often a topic is looked at: it may have grown. */
  private val LookNanos = TimeUnit.SECONDS.toNanos(10)

  /** When each sink's topic was looked at last, in one start of a query. */
  private final class Started { val lookedAt = mutable.HashMap.empty[Int, Long] }

  private val started = new ConcurrentHashMap[UUID, Started]()

  /** What the tasks of a batch have to know.
    *
    * @param tasks how many tasks the batch has
    */
  def plan(session: SparkSession, spec: JobSpec, tasks: Int): PulsarPlans = {
    val query = RunningBatch.query(session).getOrElse(
      throw new IllegalStateException("a Pulsar sink is written by streaming queries only"))
    val running = RunningBatch.current(session).getOrElse(
      throw new IllegalStateException("a Pulsar sink is written in micro-batches only"))
    val batch = running.currentBatchId
    val start = Option(started.get(query.runId)).getOrElse {
      val made = new Started
      started.put(query.runId, made)
      QueryEnd.of(query) {
        started.remove(query.runId)
        Producers.closeOf(query.runId.toString)
        Lane.forget(query.runId.toString)
      }
      made
    }
    val plans = sinksOf(spec).map { case (sink, number) =>
      number -> planOf(spec, sink, number, start, batch, tasks)
    }
    PulsarPlans(spec.run, query.runId.toString, plans.toMap, running.isFirstBatch)
  }

  private def sinksOf(spec: JobSpec): Seq[(SinkSpec, Int)] =
    spec.sinks.zipWithIndex.filter(_._1.pulsar.isDefined)

  private def planOf(spec: JobSpec, sink: SinkSpec, number: Int, start: Started, batch: Long,
      tasks: Int): PulsarPlan = {
    val options = sink.pulsar.get
    val plan = PulsarPlan(PulsarPlan.names(spec, sink.name), sink.path, 0, options)
    val due = start.lookedAt.get(number).forall(System.nanoTime() - _ > LookNanos)
    lazy val found = {
      start.lookedAt(number) = System.nanoTime()
      try Clients.use(options.access)(PulsarTopics.partitions(_, sink.path))
      catch { case f: PulsarFailure => throw named(f, plan) }
    }
    // At each start, also where the record tells: a topic that is gone is told at once, and simply.
    if (due) found
    if (!options.exactlyOnce) plan
    else {
      val layout = new Layouts(spec.journal, sink.name).of(batch, tasks, due, () => found)
      def other = found < layout.partitions || layout.partitions == 0 && found > 0
      if (due && other) {
        throw new PulsarFailure(PulsarFailure.Other, plan.shown, options.access.url,
          s"the topic has $found partitions, but ${layout.partitions} when the run wrote to it: was " +
            "it created anew? Start from a snapshot (--from) or with --fresh, as a new run", null)
      }
      plan.copy(partitions = layout.partitions)
    }
  }

  /** The same failure with the topic's name as people know it. */
  private def named(f: PulsarFailure, plan: PulsarPlan): PulsarFailure =
    if (f.kind == PulsarFailure.TopicMissing) PulsarFailure.missing(plan.shown, f.servers, f)
    else new PulsarFailure(f.kind, plan.shown, f.servers, f.text, f)

  /** By sink, the last batch of the run that any task has begun to write.
    *
    * The broker keeps a number for a producer and nothing more: there is no room for a fingerprint.
    */
  def markers(spec: JobSpec): Map[String, Seq[Marker]] = sinksOf(spec).map { case (sink, _) =>
    val options = sink.pulsar.get
    val layouts =
      if (!options.exactlyOnce || spec.journal.isEmpty) Nil
      else new Layouts(spec.journal, sink.name).read()
    val last = if (layouts.isEmpty) -1L else {
      val names = PulsarPlan.names(spec, sink.name)
      // A topic that has grown since is known by its new number, which no task has used.
      val partitions = layouts.map(_.partitions).max
      val keys = for {
        task <- 0 until layouts.map(_.tasks).max
        lane <- 0 until math.max(1, partitions)
      } yield ProducerKey(
        options.access, PulsarTopics.partition(sink.path, partitions, lane), names + task)
      SequenceId.batchOf(Producers.lastSequenceIds(keys).max)
    }
    sink.name -> (if (last < 0) Nil else Seq(Marker(last)))
  }.toMap
}
