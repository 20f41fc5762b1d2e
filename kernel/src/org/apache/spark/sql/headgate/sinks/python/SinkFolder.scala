/** Owns what a run's home keeps of a sink that Python writes: staged rows, and which batch is out. */
package org.apache.spark.sql.headgate.sinks.python

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.{DiskFiles, HomeFiles, Marker}
import org.apache.spark.sql.headgate.sinks.core.{JobSpec, SinkSpec, TaskPlace}

/** `sinks/<sink>` beside the run's journal; without a journal, as before a run is chosen, nothing is out. */
private final class SinkFolder(job: JobSpec, sink: SinkSpec) {
  val prefix: String = DiskFiles.fileName(sink.name)

  private lazy val root: HomeFiles = HomeFiles.beside(job.journal, "sinks").below(prefix)

  lazy val staged: HomeFiles = root.below("staged")

  def create(): Unit = staged.create()

  /** The last batch that Python began to write: it may be out. */
  def begun: Option[Marker] = read().map(Marker.read)

  /** The last batch, if it is known to be out. */
  def out: Option[Marker] = read().filter(_.path("out").asBoolean).map(Marker.read)

  private def read(): Option[JsonNode] =
    if (job.journal.isEmpty) None
    else root.read(SinkFolder.File).map(new ObjectMapper().readTree(_))

  def write(mark: Marker, isOut: Boolean, fsync: Boolean): Unit = {
    val json = JsonNodeFactory.instance.objectNode().put("version", 1).put("out", isOut)
    root.write(SinkFolder.File, mark.writeTo(json).toString, fsync)
  }

  /** Deletes staged rows of batches up to this one, with those of tasks that died. */
  def removeStaged(batch: Long): Unit =
    staged.list()
      .filter(name => TaskPlace.belongsTo(name.stripPrefix("."), prefix, batch))
      .foreach(staged.delete)
}

private object SinkFolder {
  private val File = "marker.json"
}
