package org.apache.spark.sql.headgate.steps.join

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.batch.OnceABatch
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.{RunningBatch, Session}
import org.apache.spark.sql.headgate.steps.core.{SortLimits, StatefulStep}
import org.apache.spark.sql.headgate.store.{CacheConf, StoreSpec}
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.{Drained, LeastDeadline, Saturating}

/** Runs a [[Join]]: rows come by key, side and place; the work of a partition is [[JoinTask]]. */
case class JoinExec(child: SparkPlan, spec: JoinSpec, keys: Seq[Attribute], input: Attribute, position: Attribute,
    time: Attribute, tie: Option[Attribute], rows: Seq[Attribute], test: Option[PairTest],
    stores: Seq[StoreSpec], output: Seq[Attribute], @transient batch: Option[RunningBatch])
  extends UnaryExecNode with StatefulStep {

  override def step: String = spec.step
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override def outputPartitioning: Partitioning = UnknownPartitioning(getStateInfo.numPartitions)
  override def requiredChildDistribution: Seq[Distribution] = clusteredBy(keys) :: Nil
  // rows without a position come by time: a replayed batch gets its blocks in another order
  private def order: Seq[Attribute] = Seq(input, position) ++ tie.toSeq.flatMap(Seq(time, _))
  override protected def withNewChildInternal(c: SparkPlan): JoinExec = copy(child = c)
  override val stateStoreNames: Seq[String] = stores.map(_.name)

  /** The watermarks of the batch before and of this one, in microseconds. */
  @transient private lazy val watermarks: (Long, Long) = batch.fold((Long.MinValue, Long.MinValue)) { b =>
    val drained = Drained.of(session)
    def micros(millis: Long, ended: Boolean) =
      if (ended) Long.MaxValue else if (millis > 0) Saturating.micros(millis) else Long.MinValue
    (micros(b.watermarkBeforeMs, drained.before), micros(b.watermarkMs, drained.now))
  }

  // rows that leave unmatched need no new input for it; what is only forgotten can wait for some
  @transient private lazy val due = new LeastDeadline
  private def gives: Boolean = spec.gives(JoinSpec.Left) || spec.gives(JoinSpec.Right)
  override def shouldRunAnotherBatch(watermark: Long): Boolean = {
    val next = RunningBatch.nextWatermarkMs(session)
    gives && next > 0 && due.value < Saturating.micros(next)
  }

  override protected def doExecute(): RDD[InternalRow] = {
    batch.foreach(b => OnceABatch.check(b, step))
    metrics // created on the driver before the closure is made
    val (before, now) = watermarks
    sparkContext.register(due, s"headgate $step due")
    def counter(output: String) = Counters.register(session, step, output)
    val unmatched = Seq("left", "right").zip(spec.unmatched).map { case (side, what) => what match {
      case Unmatched.Drop => null
      case Unmatched.Null => counter("records_unmatched")
      case Unmatched.Side => counter(s"records_out_unmatched_$side")
    } }
    val plan = JoinPlan(spec, keys, input, time, rows, child.output, test, before, now, due,
      JoinCounters(counter("records_in"), counter("records_out"), counter("records_out_late"), unmatched,
        counter("state_inserted"), counter("state_removed")),
      batch.fold(0L)(_.id), TaskFailures.every(session), order, SortLimits.of(session),
      CacheConf.bytes(session), JoinExec.blockBytes(session))
    runTasks[JoinTask](child.execute())((partition, opened, rows, _, finished) =>
      new JoinTask(plan, opened, rows, partition, finished))
  }
}

object JoinExec {
  private val BlockKey = "spark.headgate.join.block.bytes"

  /** What rows of a key and side may take before some of them are kept apart. */
  def blockBytes(session: Session): Int =
    session.conf.getOption(BlockKey).fold(8 << 10)(text => JavaUtils.byteStringAsBytes(text).toInt)
}
