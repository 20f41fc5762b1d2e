/** Owns the Kafka sinks' part of a task. */
package org.apache.spark.sql.headgate.sinks.kafka

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.sinks.core.{
  SinkWriter, TaskPlace, TaskPlan, TaskSinks, ValueEncoding}
import org.apache.spark.sql.types.StructType

/** What a task has to know of one sink.
  *
  * @param hidden the parts of a record that come first in the struct
  */
private[headgate] case class KafkaSinkPlan(
    topic: String, hidden: Seq[String], schema: StructType, encoding: ValueEncoding)

/** The groups of a job's Kafka sinks.
  *
  * @param mark of the batch; none outside of a query
  */
private[headgate] case class KafkaPlan(
    groups: Array[GroupPlan],
    sinks: Map[Int, KafkaSinkPlan],
    timeZone: String,
    mark: Option[Marker])
  extends TaskPlan {
  override def open(task: TaskPlace): TaskSinks =
    new KafkaTasks(this, task.task, mark.filter(_.batch == task.batch).getOrElse(Marker(task.batch)))
}

/** The groups of a task, each with a transaction of its own. */
private[headgate] final class KafkaTasks(plan: KafkaPlan, task: Int, mark: Marker) extends TaskSinks {
  private val open = plan.groups.map(new GroupTask(_, task, mark, TaskPlace.isRetry))

  override def writer(sink: Int): SinkWriter = {
    val group = open(plan.groups.indexWhere(_.group.sinks.contains(sink)))
    val of = plan.sinks(sink)
    new KafkaWriter(group, of.topic,
      new RecordMaker(of.topic, of.schema, of.hidden, plan.timeZone, of.encoding))
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
