/** Owns what a run's home keeps of a sink that Python writes: staged rows, and which batch is out. */
package org.apache.spark.sql.headgate.sinks.python

import java.io.File
import java.nio.file.{Files, NoSuchFileException, Path}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.{DiskFiles, DiskSync, Marker}
import org.apache.spark.sql.headgate.sinks.core.{JobSpec, SinkSpec, TaskPlace}

/** `sinks/<sink>` beside the run's journal; without a journal, as before a run is chosen, nothing is out. */
private final class SinkFolder(job: JobSpec, sink: SinkSpec) {
  val prefix: String = DiskFiles.fileName(sink.name)

  private lazy val root: Path =
    DiskFiles.path(job.journal).resolveSibling("sinks").resolve(prefix)

  lazy val staged: Path = root.resolve("staged")
  private lazy val file: Path = root.resolve("marker.json")

  def create(): Unit = {
    DiskSync.createFolders(root)
    Files.createDirectories(staged)
  }

  def file(name: String): File = new File(staged.toFile, name)

  /** The last batch that Python began to write: it may be out. */
  def begun: Option[Marker] = read().map(Marker.read)

  /** The last batch, if it is known to be out. */
  def out: Option[Marker] = read().filter(_.path("out").asBoolean).map(Marker.read)

  private def read(): Option[JsonNode] =
    if (job.journal.isEmpty) None
    else try Some(new ObjectMapper().readTree(Files.readAllBytes(file)))
    catch { case _: NoSuchFileException => None }

  def write(mark: Marker, isOut: Boolean, fsync: Boolean): Unit = {
    val json = JsonNodeFactory.instance.objectNode().put("version", 1).put("out", isOut)
    DiskFiles.writeAtomically(file, mark.writeTo(json).toString, fsync)
  }

  /** Deletes staged rows of batches up to this one, with those of tasks that died. */
  def removeStaged(batch: Long): Unit =
    Option(staged.toFile.list()).toSeq.flatten
      .filter(name => TaskPlace.belongsTo(name.stripPrefix("."), prefix, batch))
      .foreach(name => DiskFiles.deleteQuietly(file(name)))
}
