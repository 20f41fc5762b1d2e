package org.apache.spark.sql.headgate.steps.core

import org.apache.hadoop.conf.Configuration

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.streaming.operators.stateful._
import org.apache.spark.sql.execution.streaming.operators.stateful.join.StreamingSymmetricHashJoinHelper._
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.headgate.commit.DiskSync
import org.apache.spark.sql.headgate.spark.RunningBatch
import org.apache.spark.sql.headgate.store.{OpenStores, OperatorId, OperatorMetadata, StoreSpec}
import org.apache.spark.util.SerializableConfiguration

/**
 * The base of our stateful operators: state under the step's own id, one or more stores a
 * partition that are loaded and committed together, and the names that Spark reports.
 */
trait StatefulStep extends StateStoreWriter { self: SparkPlan =>
  def step: String
  def batch: Option[RunningBatch]
  def stores: Seq[StoreSpec]

  override def stateInfo: Option[StatefulOperatorStateInfo] = stateInfoOf
  // decided once: later the execution may already belong to the next batch
  @transient private lazy val stateInfoOf = batch.map(_.stateInfo(OperatorId.of(step)))

  override def shortName: String = OperatorMetadata.name(step)

  override def validateAndMaybeEvolveStateSchema(hadoopConf: Configuration, batchId: Long,
      stateSchemaVersion: Int): List[StateSchemaValidationResult] =
    stores.toList.map { s =>
      StateSchemaCompatibilityChecker.validateAndMaybeEvolveStateSchema(getStateInfo, hadoopConf,
        List(StateStoreColFamilySchema(StateStore.DEFAULT_COL_FAMILY_NAME, 0, s.keySchema, 0,
          s.valueSchema)), session.sessionState, stateSchemaVersion, storeName = s.name)
    }

  override def operatorStateMetadata(paths: List[List[String]]): OperatorStateMetadata =
    OperatorMetadata.of(getStateInfo.operatorId, shortName, stores, getStateInfo.numPartitions)

  /**
   * Runs a task on each partition, there where its state is, and commits its stores when it has ended.
   *
   * @param task makes it of the partition, its stores, its rows, those of the second input, and what
   *             to call in the end
   */
  protected def runTasks[T <: StepTask](input: RDD[InternalRow], second: Option[RDD[InternalRow]] = None)(
      task: (Int, OpenStores, Iterator[InternalRow], Iterator[InternalRow], T => Unit) => T): RDD[InternalRow] = {
    val info = getStateInfo
    val specs = stores
    val conf = new StateStoreConf(session.sessionState.conf)
    val hadoop = SerializableConfiguration.broadcast(sparkContext, session.sessionState.newHadoopConf())
    val coordinator = session.sessionState.streamingQueryManager.stateStoreCoordinator
    val other = second.getOrElse(sparkContext.parallelize(Seq.empty[InternalRow], info.numPartitions))
    input.stateStoreAwareZipPartitions(other, info, stateStoreNames, coordinator) { (partition, rows, others) =>
      val started = System.nanoTime()
      val opened = OpenStores.load(info, partition, specs, conf, hadoop.value.value)
      task(partition, opened, rows, others, ended => {
        longMetric("allUpdatesTimeMs") += (System.nanoTime() - started) / 1000000
        longMetric("numOutputRows") += ended.rowsOut
        longMetric("numUpdatedStateRows") += ended.rowsStored
        longMetric("numRemovedStateRows") += ended.rowsRemoved
        commitStores(opened)
      })
    }
  }

  /** Commits every store of the task, then reports their ids and sizes to the driver. */
  private def commitStores(opened: OpenStores): Unit = {
    longMetric("commitTimeMs") += timeTakenMs {
      opened.stores.foreach(_.commit())
      DiskSync.awaitInExecutor(opened.ids.map(_.storeId.storeCheckpointLocation()).toSeq)
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
