/** Owns the touch with what Spark keeps to itself: all that may differ from one version of Spark to the
  * next is in this package, and another version of Spark is another copy of it.
  */
package org.apache.spark.sql.headgate

package object spark {
  type Session = org.apache.spark.sql.classic.SparkSession

  // state stores
  type StateStore = org.apache.spark.sql.execution.streaming.state.StateStore
  type ReadStateStore = org.apache.spark.sql.execution.streaming.state.ReadStateStore
  type StoreId = org.apache.spark.sql.execution.streaming.state.StateStoreProviderId
  type StoredPair = org.apache.spark.sql.execution.streaming.state.UnsafeRowPair
  type StoredPairs = org.apache.spark.sql.execution.streaming.state.StateStoreIterator[StoredPair]

  // files of a checkpoint
  type CheckpointFileManager = org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
  type CheckpointStream =
    org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream

  // Python workers
  type PythonFunction = org.apache.spark.api.python.PythonFunction
  type Metric = org.apache.spark.sql.execution.metric.SQLMetric

  // files of any format
  type FileOutput = org.apache.spark.sql.execution.datasources.OutputWriter

  // a sink that takes updates as it takes appended rows
  type TakesUpdates = org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend
}
