package org.apache.spark.sql.headgate.spark

import java.util.{Properties, UUID}

import scala.util.Try

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.runtime.{IncrementalExecution, MicroBatchExecution}

/**
 * What a node of ours knows about the micro-batch that it is planned for (driver only).
 *
 * A plan prints its nodes' arguments and compares them to reuse exchanges: so this prints nothing
 * of the execution (which would print the plan, for ever) and equals any other of the same batch.
 */
final class RunningBatch private[spark] (execution: IncrementalExecution) {
  def runId: UUID = execution.runId
  def id: Long = execution.currentBatchId
  def checkpointLocation: String = execution.checkpointLocation
  /** Processing time: the batch's time in the offset log, the same when the batch is replayed. */
  def timeMs: Long = execution.offsetSeqMetadata.batchTimestampMs
  def timeBeforeMs: Option[Long] = execution.prevOffsetSeqMetadata.map(_.batchTimestampMs)

  /**
   * The job's watermark in this batch, and in the one before; 0 if there is none yet.
   *
   * Not what Spark's WatermarkPropagator says of an operator: after each batch it walks the
   * executed plan, where the source of a stream that several steps share stands below the first
   * of them only, and takes the others for operators without a watermark.
   */
  def watermarkMs: Long = execution.offsetSeqMetadata.batchWatermarkMs
  def watermarkBeforeMs: Long = execution.prevOffsetSeqMetadata.fold(0L)(_.batchWatermarkMs)

  private[spark] def stateInfo(operator: Long): StatefulOperatorStateInfo =
    StatefulOperatorStateInfo(execution.checkpointLocation, runId, operator, id,
      execution.numStateStores, execution.stateSchemaMetadatas.get(operator),
      execution.currentStateStoreCkptId.get(operator))

  /** How many partitions the state of a step has. */
  def statePartitions: Int = execution.numStateStores

  /** Whether the query was started with this batch. */
  def isFirst: Boolean = execution.isFirstBatch

  override def toString: String = s"batch $id"
  override def equals(o: Any): Boolean = o match {
    case b: RunningBatch => b.runId == runId && b.id == id
    case _ => false
  }
  override def hashCode: Int = id.hashCode
}

object RunningBatch {
  /** The batch that is being planned or executed on this thread, if any. */
  def of(session: Session): Option[RunningBatch] = {
    val batch = session.sparkContext.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)
    if (batch == null) None
    else RunningQuery.of(session).flatMap(_.lastExecution).filter(_.currentBatchId == batch.toLong)
      .map(new RunningBatch(_))
  }

  /** The number of the batch that a task belongs to, if it is of one. */
  def ofTask(task: TaskContext): Option[Long] =
    Option(task.getLocalProperty(MicroBatchExecution.BATCH_ID_KEY)).map(_.toLong)

  /** The query run and the number of the batch that a stage with these properties belongs to. */
  def ofProperties(properties: Properties): Option[(UUID, Long)] =
    for {
      of <- Option(properties)
      batch <- Option(of.getProperty(MicroBatchExecution.BATCH_ID_KEY))
      run <- Option(of.getProperty(SparkContext.SPARK_JOB_GROUP_ID)) // StreamExecution's group is its run
      id <- Try(UUID.fromString(run)).toOption
    } yield (id, batch.toLong)

  /** The watermark that the next batch will have; for the same reason not what Spark tells. */
  def nextWatermarkMs(session: Session): Long = RunningQuery.of(session).fold(0L)(_.nextWatermarkMs)
}
