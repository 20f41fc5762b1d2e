/** Owns how Spark plans the scan of a source. */
package org.apache.spark.sql.headgate.spark

import org.apache.spark.sql.execution.{InputAdapter, ProjectExec, SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanExecBase

object Scans {

  /** The scan itself where Spark put only a projection on it that copies each row into an UnsafeRow:
    * decoding reads a record once and needs no copy of it (DataSourceV2Strategy adds that one).
    */
  def withoutCopy(child: SparkPlan): SparkPlan = child match {
    case WholeStageCodegenExec(ProjectExec(columns, InputAdapter(scan: DataSourceV2ScanExecBase)))
        if columns == scan.output && !scan.supportsColumnar => scan
    case ProjectExec(columns, scan: DataSourceV2ScanExecBase)
        if columns == scan.output && !scan.supportsColumnar => scan
    case other => other
  }
}
