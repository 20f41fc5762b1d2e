/** Owns the base of our stateful operators. */
package org.apache.spark.sql.headgate.steps.core

import org.apache.hadoop.fs.Path

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.commit.DiskSync
import org.apache.spark.sql.headgate.spark.{OpenStores, StateOperator}
import org.apache.spark.sql.headgate.store.{OperatorId, StoreSpec}

/** State under the step's own id, tasks that read and write it, and the names that Spark reports. */
trait StatefulStep extends StateOperator { self: SparkPlan =>
  def step: String
  override def stores: Seq[StoreSpec]

  override def operatorId: Long = OperatorId.of(step)
  override def shortName: String = OperatorId.name(step)
  override protected def awaitOnDisk(stores: Seq[Path]): Unit = DiskSync.awaitInExecutor(stores)

  /**
   * Runs a task on each partition, there where its state is, and commits its stores when it has ended.
   *
   * @param task makes it of the partition, its stores, its rows, those of the second input, and what
   *             to call in the end
   */
  protected def runTasks[T <: StepTask](input: RDD[InternalRow], second: Option[RDD[InternalRow]] = None)(
      task: (Int, OpenStores, Iterator[InternalRow], Iterator[InternalRow], T => Unit) => T): RDD[InternalRow] =
    onStores(input, second) { (partition, opened, rows, others) =>
      task(partition, opened, rows, others, ended => {
        longMetric("allUpdatesTimeMs") += (System.nanoTime() - opened.begunNanos) / 1000000
        longMetric("numOutputRows") += ended.rowsOut
        longMetric("numUpdatedStateRows") += ended.rowsStored
        longMetric("numRemovedStateRows") += ended.rowsRemoved
        commitStores(opened)
      })
    }
}
