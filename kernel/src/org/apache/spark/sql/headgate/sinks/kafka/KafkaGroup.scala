/** Owns which Kafka sinks of a job share a transaction, and all names that are made for them. */
package org.apache.spark.sql.headgate.sinks.kafka

import org.apache.spark.sql.headgate.commit.{DiskFiles, Marker, OutputTakenException, Owner}
import org.apache.spark.sql.headgate.sinks.core.JobSpec

/** Sinks of a job that a task writes in one transaction: the same cluster, delivery and markers.
  *
  * @param sinks number of the sink -> its topic
  */
case class KafkaGroup(
    job: String,
    run: String,
    runKey: String,
    number: Int,
    client: Map[String, String],
    exactlyOnce: Boolean,
    markerTopic: String,
    transactionTimeoutMs: Int,
    sinks: Map[Int, String],
    owner: Owner = Owner("", "")) {

  private def escaped(name: String): String = DiskFiles.fileName(name)

  def transactionalIdPrefix: String = s"headgate.${escaped(job)}.$number."
  def transactionalId(task: Int): String = transactionalIdPrefix + task

  /** The run is in it: a fresh start or a restore counts its batches anew, and writes them. */
  def markerKeyPrefix: String = s"${escaped(job)}/${escaped(runKey)}/$number/"
  def markerKey(task: Int): String = markerKeyPrefix + task

  /** Not of a run: a topic is written by one home's job, in all its runs. */
  def ownerKeyPrefix: String = s"${escaped(job)}/owner/"

  /** By consumer group, the topic whose owner its offset names: quickly read, but it expires. */
  def ownerGroups: Map[String, String] =
    if (owner.id.isEmpty) Map.empty
    else sinks.values.map(topic => s"headgate.${escaped(job)}.owner.$topic" -> topic).toMap

  /** The group's sinks, for people. */
  def shown: String = sinks.toSeq.sorted.map(_._2).distinct.mkString(", ")

  def consumerGroupPrefix: String = s"headgate.${escaped(job)}.${escaped(runKey)}.$number."
  def consumerGroup(task: Int): String = consumerGroupPrefix + task

  def taken(topic: String, by: Owner): OutputTakenException =
    new OutputTakenException(topic, s"kafka://$servers/$topic", by)

  def servers: String = client.getOrElse("bootstrap.servers", "")
}

object KafkaGroup {

  /** The groups of a job, numbered in the order of their first sinks. */
  def of(spec: JobSpec, sinks: Seq[(Int, KafkaOptions)]): Seq[KafkaGroup] = {
    def shared(o: KafkaOptions) = (o.client, o.exactlyOnce, o.markerTopic)
    sinks.map(s => shared(s._2)).distinct.zipWithIndex.map {
      case (key @ (client, exactlyOnce, markerTopic), number) =>
        val members = sinks.filter(s => shared(s._2) == key)
        KafkaGroup(spec.job, spec.run, spec.runKey, number, client, exactlyOnce, markerTopic,
          members.map(_._2.transactionTimeoutMs).max,
          members.map { case (i, o) => i -> o.topic }.toMap, spec.owner)
    }
  }

  /** The number behind a prefix, if there is nothing else. */
  def taskOf(name: String, prefix: String): Option[Int] =
    if (name.startsWith(prefix)) name.substring(prefix.length).toIntOption.filter(_ >= 0) else None
}

/** What tasks have to know of a group.
  *
  * @param start distinguishes this start of the query from others of the same run
  * @param batchBytes how large the producer's batches may get
  * @param markers by task, what the marker topic had when the query started
  */
case class GroupPlan(
    group: KafkaGroup,
    start: String,
    batchBytes: Int,
    markerPartition: Int = 0,
    markers: Map[Int, Marker] = Map.empty)
