/** Owns the Kafka sinks' part of a task. */
package org.apache.spark.sql.headgate.sinks.kafka

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.sinks.core.{ByTask, ByTaskPlan, SinkPlan, SinkWriter, TaskPlace}

/** The groups of a job's Kafka sinks.
  *
  * @param mark of the batch; none outside of a query
  */
case class KafkaPlan(groups: Array[GroupPlan], mark: Option[Marker] = None) extends ByTaskPlan {
  override def kind: String = "kafka"
  override def open(task: Int, batch: Long, timeZone: String): ByTask =
    new KafkaTasks(groups, task, mark.filter(_.batch == batch).getOrElse(Marker(batch)), timeZone)
}

/** The groups of a task, each with a transaction of its own. */
final class KafkaTasks(groups: Array[GroupPlan], task: Int, mark: Marker, timeZone: String)
  extends ByTask {

  private val open = groups.map(new GroupTask(_, task, mark, TaskPlace.isRetry))

  override def writer(sink: Int, plan: SinkPlan): SinkWriter = {
    val group = open(groups.indexWhere(_.group.sinks.contains(sink)))
    val options = plan.spec.kafka.get
    new KafkaWriter(
      group, plan.spec.path, new RecordMaker(plan.spec.path, plan.schema, options.lead, timeZone))
  }

  override def commit(): Unit = open.foreach(_.commit())
  override def abort(): Unit = open.foreach(_.abort())
}

private final class KafkaWriter(group: GroupTask, topic: String, maker: RecordMaker)
  extends SinkWriter {

  private val done = group.callback(topic)

  override def write(row: InternalRow): Unit =
    if (group.opened()) group.send(maker.record(row), done)

  override def finish(): Unit = () // the group commits, when all its sinks have finished
  override def abort(): Unit = ()
}
