package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame => ApiFrame, SparkSession => ApiSession}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}
import org.apache.spark.sql.headgate.batch.{BatchGuards, JobClock, OnceABatch, StopAfterBatch}
import org.apache.spark.sql.headgate.commit.Fence
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.planning.{Branch, Carry, Chain, CountRows, Inspect, ObserveTime, SplitBuilder, Tee, Unplaced}
import org.apache.spark.sql.headgate.sinks.core.{RowPlaces, SinkProvider}
import org.apache.spark.sql.headgate.steps.lookup.{Lookup, Missing}
import org.apache.spark.sql.headgate.store.{KeepsState, OperatorId}
import org.apache.spark.sql.headgate.time.{Drained, JobTimes}
import org.apache.spark.sql.streaming.{OutputMode, StreamingQuery, Trigger}
import org.apache.spark.sql.types.{DataType, StructType}

/** What headgate/kernel.py calls. */
object Headgate {
  private def classic(df: ApiFrame): DataFrame = df.asInstanceOf[DataFrame]

  private def column(plan: LogicalPlan, name: String): Attribute =
    plan.output.find(_.name == name).getOrElse(
      throw new IllegalArgumentException(s"no column $name in ${plan.output.map(_.name).mkString(", ")}"))

  def operatorId(step: String): Long = OperatorId.of(step)

  /**
   * @param table columns: the keys, then `value`; `position` and `deleted` may be null
   * @param missing null, drop, side or wait:MILLISECONDS
   * @param held    the stream's event time, if rows that wait hold the watermark; else null
   */
  def lookup(stream: ApiFrame, table: ApiFrame, step: String, streamKeys: JList[String],
      tableKeys: JList[String], value: String, position: String, deleted: String, into: String,
      missing: String, held: String): ApiFrame = {
    val left = classic(stream).queryExecution.analyzed
    val right = classic(table).queryExecution.analyzed
    val stored = column(right, value)
    Dataset.ofRows(classic(stream).sparkSession, Lookup(left, right, step,
      streamKeys.asScala.map(column(left, _)).toSeq, tableKeys.asScala.map(column(right, _)).toSeq,
      stored, Option(position).map(column(right, _)), Option(deleted).map(column(right, _)),
      AttributeReference(into, stored.dataType)(), Missing.parse(missing),
      left.output.find(_.name == SplitBuilder.Out), Option(held).map(column(left, _))))
  }

  /** @param df a repartition of the rows that several steps use */
  def tee(df: ApiFrame): ApiFrame =
    Dataset.ofRows(classic(df).sparkSession,
      Tee(classic(df).queryExecution.analyzed.mapChildren(Unplaced(_))))

  def count(df: ApiFrame, step: String, output: String): ApiFrame =
    Dataset.ofRows(classic(df).sparkSession, CountRows(classic(df).queryExecution.analyzed, step, output))

  /** The rows of a source; its watermark follows the times in a column of them. */
  def observe(df: ApiFrame, source: String, at: String): ApiFrame = {
    val rows = classic(df).queryExecution.analyzed
    Dataset.ofRows(classic(df).sparkSession, ObserveTime(rows, source, column(rows, at)))
  }

  /** The users of a shared stream in one pass, or null if one of them is no plain chain. */
  def split(base: ApiFrame, branches: JList[ApiFrame], sinks: JList[Integer],
      sinkSchemas: JList[String], spreadBy: JList[String], riders: Boolean): ApiFrame =
    SplitBuilder.build(classic(base),
      branches.asScala.zip(sinks.asScala).map { case (b, s) =>
        Branch(classic(b).queryExecution.analyzed, s.intValue)
      }.toSeq,
      sinkSchemas.asScala.map(DataType.fromJson(_).asInstanceOf[StructType]).toSeq,
      spreadBy.asScala.toSeq, riders).orNull

  def isChain(base: ApiFrame, top: ApiFrame): Boolean =
    Chain.of(classic(top).queryExecution.analyzed, classic(base).queryExecution.analyzed).isDefined

  /** The sources by name, as they stand in the offset log: one for each leaf, from the left. */
  def sourceOrder(df: ApiFrame): JList[String] = Inspect.sourceOrder(classic(df)).asJava

  def prototype(session: ApiSession, schemaJson: String): ApiFrame =
    Inspect.prototype(session.asInstanceOf[SparkSession], schemaJson)
  /** JSON: step -> the layouts of its stores. */
  def stateLayout(df: ApiFrame): String = KeepsState.layouts(classic(df).queryExecution.analyzed)
  def stateful(df: ApiFrame): String = Inspect.stateful(classic(df))
  def nondeterministic(df: ApiFrame): String = Inspect.nondeterministic(classic(df))

  /** The writer's rows with the places of those that the sinks with these numbers get. */
  def numbered(df: ApiFrame, sinks: JList[Integer]): ApiFrame =
    Dataset.ofRows(classic(df).sparkSession,
      RowPlaces.add(classic(df).queryExecution.analyzed, sinks.asScala.map(_.intValue).toSeq))

  /** The same rows with a column of `base` that the steps up to `top` do not show, or null. */
  def carry(base: ApiFrame, top: ApiFrame, name: String): ApiFrame = {
    val below = classic(base).queryExecution.analyzed
    Carry.through(classic(top).queryExecution.analyzed, below, column(below, name))
      .map(Dataset.ofRows(classic(base).sparkSession, _)).orNull
  }

  /**
   * Starts a job's query; everyMs < 0: it ends when it has read what is there.
   *
   * @param drain     when all is read, a last batch ends event time: every window is closed
   * @param eventTime the sources that have event time, see JobTime; empty if there is none
   */
  def start(df: ApiFrame, name: String, checkpoint: String, spec: String, everyMs: Long,
      drain: Boolean, eventTime: String): StreamingQuery = {
    val frame = classic(df)
    val session = frame.sparkSession
    val sink = new SinkProvider().getTable(frame.schema, Array.empty, new java.util.HashMap[String, String]())
    JobTimes.starting(session, eventTime)(Drained.starting(session, drain)(
      session.sessionState.streamingQueryManager.startQuery(
      userSpecifiedName = Some(name), userSpecifiedCheckpointLocation = Some(checkpoint), df = frame,
      extraOptions = Map("spec" -> spec), sink = sink, outputMode = OutputMode.Append(),
      trigger = if (everyMs < 0) Trigger.AvailableNow() else Trigger.ProcessingTime(everyMs),
      triggerClock = new JobClock(session))))
  }

  def fence(session: ApiSession, sparkFolder: String, lockFile: String, jobFile: String,
      token: String): Unit = Fence.register(sparkFolder, lockFile, jobFile, token, hadoop(session))

  def unfence(session: ApiSession, sparkFolder: String): Unit = {
    BatchGuards.remove(sparkFolder, hadoop(session))
    Fence.unregister(sparkFolder, hadoop(session))
  }

  private def hadoop(session: ApiSession) =
    session.asInstanceOf[SparkSession].sessionState.newHadoopConf()

  def forget(runId: String): Unit = {
    val id = java.util.UUID.fromString(runId)
    Counters.forget(id); OnceABatch.forget(id); StopAfterBatch.forget(id)
    JobTimes.forget(id); Drained.forget(id)
  }
}
