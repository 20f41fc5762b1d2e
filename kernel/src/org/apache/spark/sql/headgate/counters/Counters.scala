package org.apache.spark.sql.headgate.counters

import java.lang.{Long => JLong}
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.collection.mutable

import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.TaskContext
import org.apache.spark.sql.headgate.spark.{RunningBatch, Session}
import org.apache.spark.util.AccumulatorV2

/**
 * Rows counted at one place of the plan, exactly, whatever is retried.
 *
 * Spark's own metrics ADD what every successful task reports, so a stage that runs again after an
 * executor was lost counts twice (DAGScheduler.updateAccumulators). Here the driver keeps one
 * number per partition and overwrites it: a partition that ran again gives the same number.
 */
final class StepCounter extends AccumulatorV2[JLong, JLong] {
  private var count = 0L
  private var partition = -1
  private val perPartition = mutable.LongMap.empty[Long]

  def inc(): Unit = add(1L)

  def add(n: Long): Unit = {
    if (partition < 0) partition = TaskContext.getPartitionId()
    count += n
  }

  override def add(n: JLong): Unit = add(n.longValue)
  override def isZero: Boolean = count == 0 && perPartition.isEmpty
  override def reset(): Unit = { count = 0; partition = -1; perPartition.clear() }
  override def copy(): StepCounter = {
    val c = new StepCounter
    c.count = count; c.partition = partition; c.perPartition ++= perPartition
    c
  }
  override def merge(other: AccumulatorV2[JLong, JLong]): Unit = other match {
    case o: StepCounter =>
      if (o.partition >= 0) perPartition(o.partition.toLong) = o.count
      o.perPartition.foreach { case (p, n) => perPartition(p) = n }
    case o => throw new IllegalArgumentException(s"not a StepCounter: ${o.getClass.getName}")
  }
  override def value: JLong = count + perPartition.valuesIterator.sum
}

/** What a user's code counted under names of its own, as exactly as a [[StepCounter]]. */
final class NamedCounter extends AccumulatorV2[(String, Long), Map[String, Long]] {
  private var counts = Map.empty[String, Long]
  private var partition = -1
  private val perPartition = mutable.LongMap.empty[Map[String, Long]]

  override def add(named: (String, Long)): Unit = {
    if (partition < 0) partition = TaskContext.getPartitionId()
    counts = counts.updated(named._1, counts.getOrElse(named._1, 0L) + named._2)
  }
  override def isZero: Boolean = counts.isEmpty && perPartition.isEmpty
  override def reset(): Unit = { counts = Map.empty; partition = -1; perPartition.clear() }
  override def copy(): NamedCounter = {
    val c = new NamedCounter
    c.counts = counts; c.partition = partition; c.perPartition ++= perPartition
    c
  }
  override def merge(other: AccumulatorV2[(String, Long), Map[String, Long]]): Unit = other match {
    case o: NamedCounter =>
      if (o.partition >= 0) perPartition(o.partition.toLong) = o.counts
      o.perPartition.foreach { case (p, n) => perPartition(p) = n }
    case o => throw new IllegalArgumentException(s"not a NamedCounter: ${o.getClass.getName}")
  }
  override def value: Map[String, Long] = (counts.toSeq ++ perPartition.valuesIterator.flatten)
    .groupMapReduce(_._1)(_._2)(_ + _)
}

/** The counters of the batches that are running now, by query run; the last few batches are kept. */
object Counters {
  private val KeptBatches = 3
  private case class Named(step: String, values: () => Map[String, Long])
  private class RunCounters {
    val batches = mutable.TreeMap.empty[Long, mutable.ArrayBuffer[Named]]
    val ages = mutable.TreeMap.empty[Long, mutable.ArrayBuffer[(String, Ages)]]
  }
  private val runs = new ConcurrentHashMap[UUID, RunCounters]()

  /** A new counter of the batch that is being planned or executed on this thread (driver only). */
  def register(session: Session, step: String, output: String): StepCounter = {
    val counter = new StepCounter
    session.sparkContext.register(counter, s"headgate $step $output")
    keep(session, Named(step, () => Map(output -> counter.value.longValue)))
    counter
  }

  /** A counter of names that are not known before the batch has run (driver only). */
  def registerNamed(session: Session, step: String): NamedCounter = {
    val counter = new NamedCounter
    session.sparkContext.register(counter, s"headgate $step counts")
    keep(session, Named(step, () => counter.value))
    counter
  }

  /** How old the records of a source are in the batch that is being planned on this thread (driver only). */
  def registerAges(session: Session, step: String): Ages = {
    val ages = new Ages
    session.sparkContext.register(ages, s"headgate $step ages")
    keepIn(session)(_.ages, step -> ages)
    ages
  }

  private def keep(session: Session, named: Named): Unit = keepIn(session)(_.batches, named)

  private def keepIn[T](session: Session)(
      of: RunCounters => mutable.TreeMap[Long, mutable.ArrayBuffer[T]], one: T): Unit =
    RunningBatch.of(session).foreach { batch =>
      val run = runs.computeIfAbsent(batch.runId, _ => new RunCounters)
      run.synchronized {
        val batches = of(run)
        batches.getOrElseUpdate(batch.id, mutable.ArrayBuffer.empty) += one
        while (batches.size > KeptBatches) batches -= batches.firstKey
      }
    }

  /** source -> bucket -> records of one batch, as a JSON object; sources without records are left out. */
  def agesJson(runId: UUID, batchId: Long): String = {
    val run = runs.get(runId)
    val found = if (run == null) Nil else run.synchronized(run.ages.getOrElse(batchId, Nil).toList)
    JsonMethods.compact(JsonMethods.render(JObject(
      found.groupBy(_._1).toList.sortBy(_._1).flatMap { case (step, of) =>
        val counts = of.flatMap(_._2.value).groupMapReduce(_._1)(_._2)(_ + _)
        if (counts.isEmpty) None
        else Some(step -> JObject(counts.toList.sortBy(_._1).map { case (at, n) => at.toString -> JInt(BigInt(n)) }))
      })))
  }

  /** step -> output -> rows of one batch; a plan that holds a step twice runs it once: sum. */
  def snapshot(runId: UUID, batchId: Long): Map[String, Map[String, Long]] = {
    val run = runs.get(runId)
    if (run == null) Map.empty
    else run.synchronized {
      run.batches.getOrElse(batchId, Nil).toSeq.groupBy(_.step).map { case (step, of) =>
        step -> of.flatMap(_.values()).groupMapReduce(_._1)(_._2)(_ + _)
      }
    }
  }

  def snapshotJson(runId: UUID, batchId: Long): String =
    JsonMethods.compact(JsonMethods.render(JObject(
      snapshot(runId, batchId).toList.sortBy(_._1).map { case (step, of) =>
        step -> JObject(of.toList.sortBy(_._1).map { case (o, n) => o -> JInt(BigInt(n)) })
      })))

  /** Whether a query run has counted something: it is one of ours. */
  def knows(runId: UUID): Boolean = runs.containsKey(runId)

  /** Called when a query ended, so that a long-lived session does not collect them. */
  def forget(runId: UUID): Unit = runs.remove(runId)
}
