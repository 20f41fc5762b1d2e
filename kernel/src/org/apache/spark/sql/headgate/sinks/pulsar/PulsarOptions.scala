/** Owns what the Pulsar sinks of a job are told, and the names and numbers that are made for them. */
package org.apache.spark.sql.headgate.sinks.pulsar

import org.apache.spark.sql.headgate.brokers.pulsar.{PulsarAccess, PulsarTopics}
import org.apache.spark.sql.headgate.sinks.core.{ByTask, ByTaskPlan, JobSpec}

/** What a Pulsar sink has beside its topic.
  *
  * @param lead which of order_by, key, value, properties and event_time come first in the sink's
  *             struct, in order
  * @param entryRows how many rows one entry of the topic has at most, if delivery is exactly once
  */
case class PulsarOptions(
    lead: Seq[String], exactlyOnce: Boolean, access: PulsarAccess, entryRows: Int) {
  lead.foreach(part => require(PulsarOptions.Parts.contains(part), s"no part '$part' of a message"))
}

object PulsarOptions {
  val Parts: Seq[String] = Seq("order_by", "key", "value", "properties", "event_time")
}

/** What tasks are told of one sink.
  *
  * @param names of its producers, up to the number of the task
  * @param topic with tenant and namespace
  * @param partitions of the topic that this batch's rows go to; 0: the topic is not partitioned
  */
case class PulsarPlan(
    names: String, topic: String, partitions: Int, options: PulsarOptions) {

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
    "headgate." + Seq(spec.job, spec.runKey, sink).map(JobSpec.fileName).mkString(".") + "."
}

/** All Pulsar sinks of a job.
  *
  * @param run for failpoints
  * @param start distinguishes this start of the query from others of the same run
  * @param sinks by the sink's number
  * @param mayBeOut whether the batch may have been run before, by an earlier start of the query
  */
case class PulsarPlans(run: String, start: String, sinks: Map[Int, PulsarPlan], mayBeOut: Boolean)
  extends ByTaskPlan {
  override def kind: String = "pulsar"
  override def open(task: Int, batch: Long, timeZone: String): ByTask =
    new PulsarTasks(this, task, batch, timeZone)
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
