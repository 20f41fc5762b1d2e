/** Owns the half of a stateful operator that is Spark's: stores, their versions, what is reported. */
package org.apache.spark.sql.headgate.spark

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.{Distribution, StatefulOpClusteredDistribution}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.state.{StateStore => Store, _}
import org.apache.spark.sql.streaming.StateOperatorProgress
import org.apache.spark.util.Utils

/** State under an id of the step's own, in one or more stores a partition that are loaded and committed
  * together.
  */
trait StateOperator extends StateStoreWriter { self: SparkPlan =>
  def operatorId: Long
  def batch: Option[RunningBatch]
  def stores: Seq[StoreShape]

  /** Numbers of the operator that Spark adds up and reports: name and meaning. */
  protected def sums: Seq[(String, String)] = Nil

  /** Other metrics that its tasks need. */
  protected def moreMetrics: Map[String, Metric] = Map.empty

  override lazy val metrics: Map[String, SQLMetric] = StateReports.metrics(sparkContext, sums) ++ moreMetrics
  override lazy val instanceMetrics: Map[StateStoreInstanceMetric, SQLMetric] = Map.empty
  override def getProgress(): StateOperatorProgress =
    StateReports.progress(shortName, stateInfo.fold(-1L)(_.numPartitions.toLong), metrics, sums)

  override def stateInfo: Option[StatefulOperatorStateInfo] = stateInfoOf
  // decided once: later the execution may already belong to the next batch
  @transient private lazy val stateInfoOf = batch.map(_.stateInfo(operatorId))

  /** Rows with the same keys are there where their state is. */
  protected def clusteredBy(keys: Seq[Expression]): Distribution =
    StatefulOpClusteredDistribution(keys, getStateInfo.numPartitions)

  override def validateAndMaybeEvolveStateSchema(hadoopConf: Configuration, batchId: Long,
      stateSchemaVersion: Int): List[StateSchemaValidationResult] =
    stores.toList.map { s =>
      StateSchemaCompatibilityChecker.validateAndMaybeEvolveStateSchema(getStateInfo, hadoopConf,
        List(StateStoreColFamilySchema(Store.DEFAULT_COL_FAMILY_NAME, 0, s.keySchema, 0,
          s.valueSchema)), session.sessionState, stateSchemaVersion, storeName = s.name)
    }

  override def operatorStateMetadata(paths: List[List[String]]): OperatorStateMetadata =
    StateMetadata.of(getStateInfo.operatorId, shortName, stores, getStateInfo.numPartitions)

  /** Runs a function on each partition, there where its state is: on the partition, its stores, its rows,
    * those of the second input, and what it reports by.
    */
  protected def onStores(input: RDD[InternalRow], second: Option[RDD[InternalRow]])(
      body: (Int, OpenStores, Iterator[InternalRow], Iterator[InternalRow], StateReports) => Iterator[InternalRow])
      : RDD[InternalRow] = {
    val info = getStateInfo
    val shapes = stores
    val conf = new StateStoreConf(session.sessionState.conf)
    val hadoop = QueryHadoop.broadcast(session)
    val coordinator = session.sessionState.streamingQueryManager.stateStoreCoordinator
    val reports = StateReports.of(metrics, checkpointInfoAccumulator)
    val other = second.getOrElse(sparkContext.parallelize(Seq.empty[InternalRow], info.numPartitions))
    input.stateStoreAwareZipPartitions(other, info, stateStoreNames, coordinator) { (partition, rows, others) =>
      body(partition, OpenStores.load(info, partition, shapes, conf, hadoop.value.value), rows, others, reports)
    }
  }
}

object StateOperator {
  /** Commits the stores of a task side by side, then reports their ids and sizes to the driver.
    *
    * @param before called with the number of a store before it commits
    * @param awaitOnDisk called when the stores, in these folders, are committed
    */
  def commit(opened: OpenStores, reports: StateReports)(before: Int => Unit)(
      awaitOnDisk: Seq[Path] => Unit): Unit = {
    reports.add("commitTimeMs", Utils.timeTakenMs {
      SideBySide.foreach(opened.stores.indices) { number =>
        before(number)
        opened.stores(number).commit(): Unit
      }
      awaitOnDisk(opened.ids.map(_.storeId.storeCheckpointLocation()).toSeq)
    }._2)
    reports.stores(opened)
  }
}
