/** Owns the base of our stateful operators. */
package org.apache.spark.sql.headgate.steps.core

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.commit.DiskSync
import org.apache.spark.sql.headgate.spark.{OpenStores, StateOperator}
import org.apache.spark.sql.headgate.store.{OperatorId, StoreSpec}
import org.apache.spark.sql.headgate.testing.TaskFailures

/** State under the step's own id, tasks that read and write it, and the names that Spark reports. */
trait StatefulStep extends StateOperator { self: SparkPlan =>
  def step: String
  override def stores: Seq[StoreSpec]

  override def operatorId: Long = OperatorId.of(step)
  override def shortName: String = OperatorId.name(step)

  /**
   * Runs a task on each partition, there where its state is, and commits its stores when it has ended.
   *
   * @param task makes it of the partition, its stores, its rows, those of the second input, and what
   *             to call in the end
   */
  protected def runTasks[T <: StepTask](input: RDD[InternalRow], second: Option[RDD[InternalRow]] = None)(
      task: (Int, OpenStores, Iterator[InternalRow], Iterator[InternalRow], T => Unit) => T): RDD[InternalRow] = {
    val failing = TaskFailures.inCommit(session)
    // no function here may name the operator: a task would get the whole plan with it
    onStores(input, second) { (partition, opened, rows, others, reports) =>
      task(partition, opened, rows, others, ended => {
        reports.add("allUpdatesTimeMs", (System.nanoTime() - opened.begunNanos) / 1000000)
        reports.add("numOutputRows", ended.rowsOut)
        reports.add("numUpdatedStateRows", ended.rowsStored)
        reports.add("numRemovedStateRows", ended.rowsRemoved)
        ended.sums.foreach { case (name, n) => reports.add(name, n) }
        StateOperator.commit(opened, reports)(TaskFailures.maybeFailInCommit(failing, _))(DiskSync.awaitInExecutor)
      })
    }
  }
}
