/** Owns the questions which batches of a run are out already, and whether readers see them. */
package org.apache.spark.sql.headgate.sink

import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.kafka.KafkaDriver
import org.apache.spark.sql.headgate.log.Topic
import org.apache.spark.sql.headgate.pulsar.PulsarDriver

object SinkMarkers {

  /** The last committed batch of each sink as a JSON object, null for a sink that has none.
    *
    * A console remembers nothing and a batch without rows leaves no mark, so they are null or behind.
    * A sink of Kafka or Pulsar has a batch out as soon as one of its tasks has; who asks must hold the
    * job's lease.
    */
  def committed(specJson: String): String = {
    val spec = JobSpec.parse(specJson)
    val json = JsonNodeFactory.instance.objectNode()
    def has(kind: String): Boolean = spec.sinks.exists(_.kind == kind)
    val none = Map.empty[String, Long]
    val byTask = (if (has("kafka")) KafkaDriver.committed(spec) else none) ++
      (if (has("pulsar")) PulsarDriver.committed(spec) else none)
    spec.sinks.foreach { sink =>
      val last = sink.kind match {
        case "log" => new LogCommit(Topic.at(sink.path), spec.writerId(sink), fsync = false).lastBatch
        case "files" =>
          new FilesCommit(
            Topic.localPath(sink.path), spec.run, spec.writerId(sink), fsync = false).lastBatch
        case _ => byTask.getOrElse(sink.name, -1L)
      }
      if (last < 0) json.putNull(sink.name) else json.put(sink.name, last)
    }
    json.toString
  }

  /** Waits, not for long, until readers see all that the job's sinks have committed; whether they do. */
  def awaitReadable(specJson: String): Boolean = {
    val spec = JobSpec.parse(specJson)
    !spec.sinks.exists(_.kind == "kafka") || KafkaDriver.awaitReadable(spec)
  }
}
