/** Owns what the tasks of a stateful operator report to the driver. */
package org.apache.spark.sql.headgate.spark

import scala.jdk.CollectionConverters._

import org.apache.spark.SparkContext
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.execution.streaming.operators.stateful.{StatefulOperatorCustomSumMetric, StatefulOpStateStoreCheckpointInfo}
import org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider._
import org.apache.spark.sql.streaming.StateOperatorProgress
import org.apache.spark.util.CollectionAccumulator

/**
 * Goes to the tasks instead of the operator, which would take the plan below it along.
 *
 * Spark has 40 metrics of RocksDB, and one a store and partition. Each is registered in every batch,
 * sent to every task and back, added up and described to listeners, though nobody reads it. These are
 * those that Headgate shows or measures with.
 */
final class StateReports private (metrics: Map[String, SQLMetric],
    committed: CollectionAccumulator[StatefulOpStateStoreCheckpointInfo]) extends Serializable {

  def add(name: String, n: Long): Unit = metrics(name) += n

  /** Called in a task when its stores are committed: their sizes and the ids of their versions. */
  private[spark] def stores(opened: OpenStores): Unit = {
    opened.stores.foreach { store =>
      val of = store.metrics
      add("numTotalStateRows", of.numKeys)
      add("stateMemory", of.memoryUsedBytes)
      of.customMetrics.foreach { case (metric, n) => metrics.get(metric.name).foreach(_ += n) }
    }
    add("numStateStoreInstances", opened.stores.length)
    if (opened.conf.enableStateStoreCheckpointIds) {
      val infos = opened.stores.map(_.getStateStoreCheckpointInfo())
      committed.add(StatefulOpStateStoreCheckpointInfo(infos.head.partitionId, infos.head.batchVersion,
        Some(infos.map(_.stateStoreCkptId.get)),
        infos.head.baseStateStoreCkptId.map(_ => infos.map(_.baseStateStoreCkptId.get))))
    }
  }
}

private[spark] object StateReports {
  private val Rows = Seq("numOutputRows" -> "number of output rows",
    "numRowsDroppedByWatermark" -> "number of rows which are dropped by watermark",
    "numTotalStateRows" -> "number of total state rows",
    "numUpdatedStateRows" -> "number of updated state rows",
    "numRemovedStateRows" -> "number of removed state rows",
    "numStateStoreInstances" -> "number of state store instances")
  private val Times = Seq("allUpdatesTimeMs" -> "time to update", "allRemovalsTimeMs" -> "time to remove",
    "commitTimeMs" -> "time to commit changes")
  private val OfRocksDb = Seq(CUSTOM_METRIC_SST_FILE_SIZE, CUSTOM_METRIC_LOAD_TIME)

  def of(metrics: Map[String, SQLMetric],
      committed: CollectionAccumulator[StatefulOpStateStoreCheckpointInfo]): StateReports =
    new StateReports(metrics, committed)

  /** @param sums of the operator's own: name and meaning */
  def metrics(context: SparkContext, sums: Seq[(String, String)]): Map[String, SQLMetric] = {
    val rows = Rows.map { case (name, meaning) => name -> SQLMetrics.createMetric(context, meaning) }
    val times = Times.map { case (name, meaning) => name -> SQLMetrics.createTimingMetric(context, meaning) }
    val own = sums.map { case (name, meaning) =>
      name -> StatefulOperatorCustomSumMetric(name, meaning).createSQLMetric(context)
    }
    val rocks = OfRocksDb.map(m => m.name -> m.createSQLMetric(context))
    (rows ++ times ++ own ++ rocks).toMap +
      ("stateMemory" -> SQLMetrics.createSizeMetric(context, "memory used by state"))
  }

  def progress(operator: String, partitions: Long, metrics: Map[String, SQLMetric],
      sums: Seq[(String, String)]): StateOperatorProgress = {
    def of(name: String): Long = metrics(name).value
    val custom = (sums.map(_._1) ++ OfRocksDb.map(_.name)).map(name => name -> Long.box(of(name)))
    new StateOperatorProgress(operatorName = operator, numRowsTotal = of("numTotalStateRows"),
      numRowsUpdated = of("numUpdatedStateRows"), allUpdatesTimeMs = of("allUpdatesTimeMs"),
      numRowsRemoved = of("numRemovedStateRows"), allRemovalsTimeMs = of("allRemovalsTimeMs"),
      commitTimeMs = of("commitTimeMs"), memoryUsedBytes = of("stateMemory"),
      numRowsDroppedByWatermark = of("numRowsDroppedByWatermark"), numShufflePartitions = partitions,
      numStateStoreInstances = of("numStateStoreInstances"),
      customMetrics = new java.util.HashMap(custom.toMap.asJava))
  }
}
