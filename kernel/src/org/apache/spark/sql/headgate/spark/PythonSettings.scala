/** Owns running a Python function over Arrow batches in one of Spark's workers. */
package org.apache.spark.sql.headgate.spark

import org.apache.spark.{JobArtifactSet, TaskContext}
import org.apache.spark.api.python.{ChainedPythonFunctions, PythonEvalType}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.python.ArrowPythonRunner
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.vectorized.ColumnarBatch

/** What a worker has to know; made on the driver. */
final class PythonSettings private (
    timeZone: String,
    largeTypes: Boolean,
    conf: Map[String, String],
    metrics: Map[String, Metric],
    artifacts: Option[String],
    recordsABatch: Int,
    bytesABatch: Long)
  extends Serializable {

  /** How many rows and bytes an Arrow batch has at most. */
  def mostRows: Int = if (recordsABatch > 0) recordsABatch else Int.MaxValue
  def mostBytes: Long = bytesABatch

  /** The batches that the function makes of others. */
  def run(function: PythonFunction, resultId: Long, schema: StructType,
      batches: Iterator[Iterator[InternalRow]], context: TaskContext): Iterator[ColumnarBatch] = {
    val runner = new ArrowPythonRunner(Seq((ChainedPythonFunctions(Seq(function)), resultId)),
      PythonEvalType.SQL_MAP_ARROW_ITER_UDF, Array(Array(0)), schema, timeZone, largeTypes, conf, metrics,
      artifacts, None)
    runner.compute(batches, context.partitionId(), context)
  }
}

object PythonSettings {
  def of(conf: SQLConf, metrics: Map[String, Metric]): PythonSettings =
    new PythonSettings(conf.sessionLocalTimeZone, conf.arrowUseLargeVarTypes,
      ArrowPythonRunner.getPythonRunnerConfMap(conf), metrics,
      JobArtifactSet.getCurrentJobArtifactState.map(_.uuid), conf.arrowMaxRecordsPerBatch,
      conf.arrowMaxBytesPerBatch)
}
