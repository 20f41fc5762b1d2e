/** Owns what Python asks about a job's sinks: what is out, whose the outputs are, what readers see. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.sinks.core.{JobOutputs, JobSinks, JobSpec, SinkKinds}

object SinkApi {

  /** The last committed batch of each sink as a JSON object, null for a sink that has none.
    *
    * A console remembers nothing and a batch without rows leaves no mark, so they are null or behind.
    * A sink whose tasks commit by themselves has a batch out as soon as one of them has. The caller
    * must hold the job's lease.
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
    val markers = outputs(spec).flatMap(_.markers()).toMap
    spec.sinks.map(sink => sink.name -> markers.getOrElse(sink.number, Nil))
  }

  private def outputs(spec: JobSpec): Seq[JobSinks] = new JobOutputs(spec, fsync = true).all

  /** By sink, the other home's job of the same name that writes there, as JSON: `owner` and `home`. */
  def others(specJson: String): String = {
    val spec = JobSpec.parse(specJson)
    val owners = outputs(spec).flatMap(_.owners()).toMap
    val json = JsonNodeFactory.instance.objectNode()
    for (sink <- spec.sinks; owner <- owners.get(sink.number) if spec.owner.isOther(Some(owner))) {
      json.putObject(sink.name).put("owner", owner.id).put("home", owner.home)
    }
    json.toString
  }

  /** Makes all sinks this job's; those that nobody has written yet become its when it does. */
  def takeOver(specJson: String): Unit = outputs(JobSpec.parse(specJson)).foreach(_.takeOver())

  /** Waits, not for long, until readers see all that the job's sinks have committed; whether they do. */
  def awaitReadable(specJson: String): Boolean =
    outputs(JobSpec.parse(specJson)).forall(_.awaitReadable())

  /** The kinds of sinks that there are. */
  def kinds(): JList[String] = SinkKinds.names.asJava
}
