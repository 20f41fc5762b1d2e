/** Owns the note of where a source started, kept beside Spark's checkpoint. */
package org.apache.spark.sql.headgate.sources.log

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.JsonNodeFactory
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.headgate.spark.{CheckpointFiles, Sessions}

/** A source's first position, written once.
  *
  * Spark asks for it again whenever it replays the source's first batch, and "latest" has moved by
  * then (MicroBatchExecution.getStartOffset). The note names its topic, because sources are
  * numbered and a number may have been another topic's before.
  */
final class InitialOffset(metadataPath: String, topic: String) {
  private val file = new Path(metadataPath, "initial.json")
  private lazy val files = CheckpointFiles.of(
    new Path(metadataPath), Sessions.hadoop(Sessions.active))

  def read(): Option[LogOffset] =
    try {
      val in = files.open(file)
      val json = try InitialOffset.mapper.readTree(in: java.io.InputStream) finally in.close()
      if (json.get("topic").asText != topic) None
      else Some(LogOffset.parse(json.get("offset").toString))
    } catch { case _: FileNotFoundException => None }

  def write(offset: LogOffset): Unit = {
    files.mkdirs(new Path(metadataPath))
    val json = JsonNodeFactory.instance.objectNode().put("topic", topic)
    json.set[JsonNode]("offset", InitialOffset.mapper.readTree(offset.json))
    CheckpointFiles.write(files, file, json.toString.getBytes(UTF_8))
  }
}

private object InitialOffset {
  val mapper = new ObjectMapper()
}
