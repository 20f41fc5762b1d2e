/** Owns the questions which batches of a run are out already, and whether readers see them. */
package org.apache.spark.sql.headgate.sinks.core

import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.{FolderOwner, Marker, Owner}
import org.apache.spark.sql.headgate.sinks.files.FilesCommit
import org.apache.spark.sql.headgate.sinks.kafka.KafkaDriver
import org.apache.spark.sql.headgate.sinks.log.LogCommit
import org.apache.spark.sql.headgate.sinks.pulsar.PulsarDriver
import org.apache.spark.sql.headgate.sources.log.Topic

object SinkMarkers {

  /** The last committed batch of each sink as a JSON object, null for a sink that has none.
    *
    * A console remembers nothing and a batch without rows leaves no mark, so they are null or behind.
    * A sink of Kafka or Pulsar has a batch out as soon as one of its tasks has; who asks must hold the
    * job's lease.
    */
  def committed(specJson: String): String = {
    val json = JsonNodeFactory.instance.objectNode()
    found(JobSpec.parse(specJson)).foreach {
      case (sink, Nil) => json.putNull(sink)
      case (sink, markers) => json.put(sink, markers.map(_.batch).max)
    }
    json.toString
  }

  /** By sink, a list of the markers of its tasks that differ; see [[Marker]]. */
  def markers(specJson: String): String = {
    val json = JsonNodeFactory.instance.objectNode()
    found(JobSpec.parse(specJson)).foreach { case (sink, markers) =>
      val list = json.putArray(sink)
      // of tasks that say the same the one that says more
      markers.groupBy(m => (m.batch, m.fingerprint)).values
        .map(same => same.find(_.position.isDefined).getOrElse(same.head))
        .toSeq.sortBy(_.batch).foreach(m => m.writeTo(list.addObject()))
    }
    json.toString
  }

  private def found(spec: JobSpec): Seq[(String, Seq[Marker])] = {
    def has(kind: String): Boolean = spec.sinks.exists(_.kind == kind)
    val none = Map.empty[String, Seq[Marker]]
    val byTask = (if (has("kafka")) KafkaDriver.markers(spec) else none) ++
      (if (has("pulsar")) PulsarDriver.markers(spec) else none)
    spec.sinks.map { sink =>
      sink.name -> (sink.kind match {
        case "log" => new LogCommit(Topic.at(sink.path), spec, sink, fsync = false).marker.toSeq
        case "files" => new FilesCommit(spec, sink, fsync = false).marker.toSeq
        case _ => byTask.getOrElse(sink.name, Nil)
      })
    }
  }

  /** By sink, the other home's job of the same name that writes there, as JSON: `owner` and `home`. */
  def others(specJson: String): String = {
    val spec = JobSpec.parse(specJson)
    val kafka =
      if (spec.sinks.exists(_.kind == "kafka")) KafkaDriver.owners(spec) else Map.empty[String, Owner]
    val json = JsonNodeFactory.instance.objectNode()
    spec.sinks.foreach { sink =>
      val owner = folderOwner(spec, sink).fold(kafka.get(sink.name))(_.read())
      if (spec.owner.isOther(owner)) {
        json.putObject(sink.name).put("owner", owner.get.id).put("home", owner.get.home)
      }
    }
    json.toString
  }

  /** Makes all sinks this job's; those that nobody has written yet become its when it does. */
  def takeOver(specJson: String): Unit = {
    val spec = JobSpec.parse(specJson)
    if (spec.sinks.exists(_.kind == "kafka")) KafkaDriver.takeOver(spec)
    spec.sinks.flatMap(folderOwner(spec, _)).filter(_.read().isDefined).foreach(_.write(spec.owner))
  }

  private def folderOwner(spec: JobSpec, sink: SinkSpec): Option[FolderOwner] = sink.kind match {
    case "log" | "files" => Some(new FolderOwner(Topic.localPath(sink.path), spec.job))
    case _ => None
  }

  /** Waits, not for long, until readers see all that the job's sinks have committed; whether they do. */
  def awaitReadable(specJson: String): Boolean = {
    val spec = JobSpec.parse(specJson)
    !spec.sinks.exists(_.kind == "kafka") || KafkaDriver.awaitReadable(spec)
  }
}
