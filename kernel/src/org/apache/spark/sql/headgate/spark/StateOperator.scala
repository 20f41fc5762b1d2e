/** Owns the half of a stateful operator that is Spark's: stores, their versions, what is reported. */
package org.apache.spark.sql.headgate.spark

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.physical.{Distribution, StatefulOpClusteredDistribution}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.state.{StateStore => Store, _}

/** State under an id of the step's own, in one or more stores a partition that are loaded and committed
  * together.
  */
trait StateOperator extends StateStoreWriter { self: SparkPlan =>
  def operatorId: Long
  def batch: Option[RunningBatch]
  def stores: Seq[StoreShape]

  /** Called in a task when its stores, in these folders, are committed. */
  protected def awaitOnDisk(stores: Seq[Path]): Unit

  /** Numbers of the operator that Spark adds up and reports: name and meaning. */
  protected def sums: Seq[(String, String)] = Nil

  override def customStatefulOperatorMetrics: Seq[StatefulOperatorCustomMetric] =
    sums.map { case (name, meaning) => StatefulOperatorCustomSumMetric(name, meaning) }

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

  /** Runs a function on each partition, there where its state is: on the partition, its stores, its rows
    * and those of the second input.
    */
  protected def onStores(input: RDD[InternalRow], second: Option[RDD[InternalRow]])(
      body: (Int, OpenStores, Iterator[InternalRow], Iterator[InternalRow]) => Iterator[InternalRow])
      : RDD[InternalRow] = {
    val info = getStateInfo
    val shapes = stores
    val conf = new StateStoreConf(session.sessionState.conf)
    val hadoop = QueryHadoop.broadcast(session)
    val coordinator = session.sessionState.streamingQueryManager.stateStoreCoordinator
    val other = second.getOrElse(sparkContext.parallelize(Seq.empty[InternalRow], info.numPartitions))
    input.stateStoreAwareZipPartitions(other, info, stateStoreNames, coordinator) { (partition, rows, others) =>
      body(partition, OpenStores.load(info, partition, shapes, conf, hadoop.value.value), rows, others)
    }
  }

  /** Commits the stores of the task side by side, then reports their ids and sizes to the driver. */
  protected def commitStores(opened: OpenStores): Unit = {
    longMetric("commitTimeMs") += timeTakenMs {
      SideBySide.foreach(opened.stores.toSeq)(store => store.commit(): Unit)
      awaitOnDisk(opened.ids.map(_.storeId.storeCheckpointLocation()).toSeq)
    }
    opened.stores.foreach(setStoreMetrics(_, setCheckpointInfo = false))
    setOperatorMetrics(opened.stores.length)
    if (opened.conf.enableStateStoreCheckpointIds) {
      val infos = opened.stores.map(_.getStateStoreCheckpointInfo())
      setStateStoreCheckpointInfo(StatefulOpStateStoreCheckpointInfo(
        infos.head.partitionId, infos.head.batchVersion,
        Some(infos.map(_.stateStoreCkptId.get)),
        infos.head.baseStateStoreCkptId.map(_ => infos.map(_.baseStateStoreCkptId.get))))
    }
  }
}
