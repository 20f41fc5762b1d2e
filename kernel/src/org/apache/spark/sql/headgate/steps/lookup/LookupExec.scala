package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{BinaryExecNode, SparkPlan}
import org.apache.spark.sql.headgate.batch.{JobClock, OnceABatch}
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.{Replicas, RunningBatch}
import org.apache.spark.sql.headgate.steps.core.StatefulStep
import org.apache.spark.sql.headgate.store.{CacheConf, StoreSpec}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{JobTimes, LeastDeadline, Saturating, WaitingTimes}

/** Runs a [[Lookup]]: both sides come partitioned by key; the work of a partition is LookupTask. */
case class LookupExec(left: SparkPlan, right: SparkPlan, step: String, leftKeys: Seq[Attribute],
    rightKeys: Seq[Attribute], value: Attribute, position: Option[Attribute],
    deleted: Option[Attribute], found: Attribute, missing: Missing, rider: Option[Attribute],
    held: Option[Attribute], ttlMs: Option[Long], rowTime: Option[Attribute],
    replicated: Boolean, @transient batch: Option[RunningBatch])
  extends BinaryExecNode with StatefulStep {

  override def output: Seq[Attribute] = left.output :+ found
  override def producedAttributes: AttributeSet = AttributeSet(found)
  override def outputPartitioning: Partitioning = {
    val before = left.outputPartitioning
    // rows of a source are folded onto the partitions of the state
    if (replicated && before.numPartitions != partitions) UnknownPartitioning(partitions) else before
  }
  private def partitions: Int = getStateInfo.numPartitions
  override def requiredChildDistribution: Seq[Distribution] =
    if (replicated) Seq(UnspecifiedDistribution, UnspecifiedDistribution)
    else Seq(clusteredBy(leftKeys), clusteredBy(rightKeys))
  override protected def withNewChildrenInternal(l: SparkPlan, r: SparkPlan): LookupExec =
    copy(left = l, right = r)

  override def stringArgs: Iterator[Any] = Iterator(step, leftKeys, rightKeys, missing)

  private def waits: Boolean = missing.isInstanceOf[Missing.Wait]
  private def waitingColumns: Seq[Attribute] = LookupStores.waitingColumns(left.output, rider)

  override def stores: Seq[StoreSpec] =
    LookupStores.of(rightKeys, value, missing, left.output, rider, held, ttlMs.isDefined, replicated)
  override val stateStoreNames: Seq[String] = stores.map(_.name)

  override protected def sums: Seq[(String, String)] = Seq(
    "headgateCacheHits" -> "rows found in the cache",
    "headgateCacheBytes" -> "bytes held by the cache")

  // waiting rows time out without new input: ask for a batch when the first of them is due
  @transient private lazy val deadlines = new LeastDeadline
  override def shouldRunAnotherBatch(watermark: Long): Boolean =
    waits && deadlines.value <= System.currentTimeMillis() + JobClock.offset(session)

  override protected def doExecute(): RDD[InternalRow] = {
    batch.foreach(b => OnceABatch.check(b, step))
    metrics // created on the driver before the closure is made
    def counter(output: String) = Counters.register(session, step, output)
    val unmatched = missing match {
      case Missing.Null => "records_unmatched"
      case Missing.Drop => "records_dropped"
      case _ => "records_out_missing"
    }
    if (waits) sparkContext.register(deadlines, s"headgate $step deadlines")
    val added = if (waits) counter("waiting_added") else null
    val removed = if (waits) counter("waiting_removed") else null
    val times = held.map { _ =>
      val least = new WaitingTimes
      sparkContext.register(least, s"headgate $step waiting times")
      JobTimes.of(session).foreach(_.watchWaiting(step, least, added, removed))
      least
    }
    val ttl = ttlMs.map(TableTtl.of(_, rowTime, batch))
    val plan = LookupPlan(leftKeys, rightKeys, value, position, deleted, missing, rider, left.output, right.output,
      if (waits) waitingColumns else Nil, batch.fold(0L)(_.timeMs), batch.fold(0L)(_.id),
      CacheConf.bytes(session),
      LookupCounters(counter("records_in"), counter("records_out"), counter(unmatched),
        counter("state_inserted"), counter("state_removed"),
        added, removed), if (waits) Some(deadlines) else None, held, times,
      batch.fold(Long.MinValue)(b => Saturating.micros(b.watermarkMs)),
      batch.exists(_.isFirst), ttl, TaskFailures.every(session))
    val stream = if (replicated) Replicas.folded(left.execute(), partitions) else left.execute()
    // what every partition has is counted once
    val all = replicated
    runTasks[LookupTask](stream, Replicas.unlessEmpty(right))((partition, opened, stream, rows, finished) =>
      new LookupTask(plan, partition == 0 || !all, opened, stream, rows, finished))
  }
}
