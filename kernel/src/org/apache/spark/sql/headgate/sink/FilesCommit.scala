/** Owns committing a batch to a folder of files, exactly once. */
package org.apache.spark.sql.headgate.sink

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, StandardCopyOption}

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.log.Topic

/** Gathers the staged files of a batch in one folder with a manifest and renames the folder in.
  *
  * The folder's name is the run and the batch; if it is there, the batch is out. So the rename is
  * the commit point, and a reader that takes only `batch=*` folders never sees half a batch.
  */
final class FilesCommit(root: Path, run: String, writerId: String, fsync: Boolean) {
  val staging: Path = root.resolve("_staging")

  def commit(batch: Long, files: Seq[Staged]): Unit = {
    val target = folder(batch)
    if (files.nonEmpty && !Files.exists(target)) {
      val gathered = staging.resolve(f"$writerId-$batch%010d-commit")
      FilesCommit.deleteTree(gathered.toFile)
      Files.createDirectories(gathered)
      val manifest = JsonNodeFactory.instance.objectNode()
      manifest.put("version", 1).put("writer", writerId).put("run", run).put("batch", batch)
      val list = manifest.putArray("files")
      files.sortBy(_.partition).foreach { f =>
        val name = f"part-${f.partition}%05d" + extension(f.name)
        val to = gathered.resolve(name)
        Files.move(staging.resolve(f.name), to, StandardCopyOption.ATOMIC_MOVE)
        list.addObject().put("name", name).put("rows", f.rows).put("bytes", Files.size(to))
      }
      Files.write(gathered.resolve("_manifest.json"), manifest.toString.getBytes(UTF_8))
      if (fsync) {
        Topic.sync(gathered.resolve("_manifest.json"))
        Topic.sync(gathered)
      }
      Files.move(gathered, target, StandardCopyOption.ATOMIC_MOVE)
      if (fsync) Topic.sync(root)
    }
    removeLeftovers(batch)
  }

  /** The last batch of this run whose folder is there, or -1. */
  def lastBatch: Long = {
    val names = Option(root.toFile.list()).getOrElse(Array.empty[String])
    val last = names.filter(_.startsWith(prefix)).map(_.substring(prefix.length))
      .filter(n => n.nonEmpty && n.forall(_.isDigit)).map(_.toLong).maxOption.getOrElse(-1L)
    if (last >= 0) checkOwner(folder(last))
    last
  }

  /** Folders are named by run and batch alone: two jobs must not take each other's for their own. */
  private def checkOwner(folder: Path): Unit = {
    val manifest = new ObjectMapper().readTree(Files.readAllBytes(folder.resolve("_manifest.json")))
    val owner = manifest.get("writer").asText
    if (owner != writerId) {
      throw new IllegalStateException(
        "HEADGATE_FOLDER_TAKEN " + JsonNodeFactory.instance.objectNode()
          .put("path", root.toString).put("writer", writerId).put("owner", owner).toString)
    }
  }

  def abort(batch: Long, files: Seq[Staged]): Unit =
    if (!Files.exists(folder(batch))) {
      files.foreach(f => Topic.deleteQuietly(staging.resolve(f.name).toFile))
    }

  private def prefix: String = s"batch=$run-"

  private def folder(batch: Long): Path = root.resolve(prefix + batch)

  /** All that follows the first dot behind the writer's own name, `.snappy.parquet` say. */
  private def extension(name: String): String = {
    val rest = name.substring(writerId.length)
    rest.substring(rest.indexOf('.'))
  }

  private def removeLeftovers(batch: Long): Unit = {
    val names = Option(staging.toFile.list()).getOrElse(Array.empty[String])
    names.map(n => if (n.startsWith(".")) n.substring(1) -> n else n -> n)
      .filter { case (plain, _) => LogCommit.belongsTo(plain, writerId, batch) }
      .foreach { case (_, n) => FilesCommit.deleteTree(new File(staging.toFile, n)) }
  }
}

object FilesCommit {
  private def deleteTree(file: File): Unit = {
    Option(file.listFiles).foreach(_.foreach(deleteTree))
    Topic.deleteQuietly(file)
  }
}
