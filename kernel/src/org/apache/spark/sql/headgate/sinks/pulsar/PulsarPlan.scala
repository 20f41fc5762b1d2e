/** Owns what the tasks of a job's Pulsar sinks have to know, and the names and numbers made for them. */
package org.apache.spark.sql.headgate.sinks.pulsar

import org.apache.spark.sql.headgate.brokers.pulsar.PulsarTopics
import org.apache.spark.sql.headgate.commit.DiskFiles
import org.apache.spark.sql.headgate.sinks.core.{JobSpec, TaskPlace, TaskPlan, TaskSinks}
import org.apache.spark.sql.types.StructType

/** What tasks have to know of one sink.
  *
  * @param names of its producers, up to the number of the task
  * @param partitions of the topic that this batch's rows go to; 0: the topic is not partitioned
  */
case class PulsarPlan(
    names: String, partitions: Int, options: PulsarOptions, schema: StructType) {
  import options.topic

  /** How many topics there are to write to. */
  def lanes: Int = math.max(1, partitions)
  def lane(number: Int): String = PulsarTopics.partition(topic, partitions, number)

  /** The topic without what every topic of Pulsar's begins with, for people. */
  def shown: String =
    topic.stripPrefix("persistent://").stripPrefix("public/default/")
}

object PulsarPlan {

  /** The run is in it: a fresh start or a restore counts its batches anew, and writes them. */
  def names(spec: JobSpec, sink: String): String =
    "headgate." + Seq(spec.job, spec.runKey, sink).map(DiskFiles.fileName).mkString(".") + "."
}

/** All Pulsar sinks of a job.
  *
  * @param run for failpoints
  * @param start distinguishes this start of the query from others of the same run
  * @param sinks by the sink's number
  * @param mayBeOut whether the batch may have been run before, by an earlier start of the query
  */
case class PulsarPlans(
    run: String, start: String, sinks: Map[Int, PulsarPlan], mayBeOut: Boolean, timeZone: String)
  extends TaskPlan {
  override def open(task: TaskPlace): TaskSinks = new PulsarTasks(this, task.task, task.batch)
}

/** Row `n` of a task in batch `b` has the number `b << 32 | n`: they grow with both. */
private[headgate] object SequenceId {
  private val Rows = 32

  def of(batch: Long, row: Long): Long = {
    require(row >>> Rows == 0, "a task has more than four thousand million rows for one sink")
    batch << Rows | row
  }
  def batchOf(id: Long): Long = id >> Rows
}
