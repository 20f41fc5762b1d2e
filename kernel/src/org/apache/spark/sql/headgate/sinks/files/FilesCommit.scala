/** Owns committing a batch to a folder of files, exactly once. */
package org.apache.spark.sql.headgate.sinks.files

import java.io.File
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, StandardCopyOption}

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.{DiskFiles, Fence, FolderOwner, Marker}
import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}
import org.apache.spark.sql.headgate.sinks.core.{JobSpec, SinkSpec, Staged, TaskPlace}

/** Gathers the staged files of a batch in one folder with a manifest and renames the folder in.
  *
  * The folder's name is the run and the batch; if it is there, the batch is out, once the manifest in
  * it says that it is this batch's. So the rename is
  * the commit point, and a reader that takes only `batch=*` folders never sees half a batch.
  */
final class FilesCommit(spec: JobSpec, sink: SinkSpec, path: String, fsync: Boolean) {
  private val root: Path = DiskFiles.path(path)
  private val writerId = spec.writerId(sink)
  val staging: Path = root.resolve("_staging")

  def commit(mark: Marker, files: Seq[Placed]): Unit = {
    val batch = mark.batch
    val target = folder(batch)
    if (files.nonEmpty && !markerOf(batch).exists(_.holds(mark, sink.name))) {
      owner.check(spec.owner, sink.name)
      val gathered = staging.resolve(f"$writerId-$batch%010d-commit")
      FilesCommit.deleteTree(gathered.toFile)
      Files.createDirectories(gathered)
      val manifest = JsonNodeFactory.instance.objectNode()
      manifest.put("version", 1).put("writer", writerId).put("run", spec.run)
      mark.writeTo(manifest)
      val list = manifest.putArray("files")
      for ((folder, inIt) <- files.groupBy(_.folder).toSeq.sortBy(_._1)) {
        Files.createDirectories(gathered.resolve(folder))
        for ((name, f) <- named(inIt.map(_.file))) {
          val to = gathered.resolve(folder).resolve(name)
          Files.move(staging.resolve(f.name), to, StandardCopyOption.ATOMIC_MOVE)
          list.addObject().put("name", gathered.relativize(to).toString).put("rows", f.rows)
            .put("bytes", Files.size(to))
        }
      }
      Files.write(gathered.resolve("_manifest.json"), manifest.toString.getBytes(UTF_8))
      if (fsync) {
        DiskFiles.sync(gathered.resolve("_manifest.json"))
        files.flatMap(f => foldersOf(f.folder)).distinct.foreach(f => DiskFiles.sync(gathered.resolve(f)))
        DiskFiles.sync(gathered)
      }
      Fence.recheck()
      Files.move(gathered, target, StandardCopyOption.ATOMIC_MOVE)
      if (fsync) DiskFiles.sync(root)
    }
    removeLeftovers(batch)
  }

  /** The files of a folder by their names there: a task's second file has a number. */
  private def named(files: Seq[Staged]): Seq[(String, Staged)] =
    for ((task, of) <- files.groupBy(_.partition).toSeq.sortBy(_._1); (f, n) <- of.zipWithIndex)
      yield f"part-$task%05d" + (if (n == 0) "" else s"-$n") + extension(f.name) -> f

  /** A folder within the batch's, and those that it is in. */
  private def foldersOf(folder: String): Seq[String] =
    if (folder.isEmpty) Nil else folder.split('/').toSeq.scanLeft("")((at, name) => s"$at$name/").tail

  /** The last batch of this run whose folder is there. */
  def marker: Option[Marker] = numbers(prefix).maxOption.flatMap(markerOf)

  private def numbers(prefix: String): Seq[Long] =
    Option(root.toFile.list()).toSeq.flatten
      .filter(_.startsWith(prefix)).map(_.substring(prefix.length))
      .filter(n => n.nonEmpty && n.forall(_.isDigit)).map(_.toLong)

  def owner: FolderOwner = new FolderOwner(root, spec.job)

  /** What a batch's folder says, if it is there. */
  private def markerOf(batch: Long): Option[Marker] =
    if (Files.exists(folder(batch))) Some(Marker.read(manifestOf(folder(batch)))) else None

  private def manifestOf(folder: Path): JsonNode =
    new ObjectMapper().readTree(Files.readAllBytes(folder.resolve("_manifest.json")))

  def abort(batch: Long, files: Seq[Staged]): Unit =
    if (!Files.exists(folder(batch))) {
      files.foreach(f => DiskFiles.deleteQuietly(staging.resolve(f.name).toFile))
    }

  /** Folders are named by run and batch. Where another home's run has taken the names, this one's
    * have its uid as well; another job must not take them for its own.
    */
  private lazy val prefix: String = {
    val plain = s"batch=${spec.run}-"
    val writer = numbers(plain).minOption
      .map(first => manifestOf(root.resolve(plain + first)).get("writer").asText).getOrElse(writerId)
    def ofJob(id: String) = id.split('.').patch(1, Nil, 1).toSeq
    if (writer == writerId) plain
    else if (ofJob(writer) == ofJob(writerId)) s"batch=${spec.runKey}-"
    else throw new CodedStateException(Coded("FOLDER_TAKEN", "path" -> root, "sink" -> sink.name,
      "owner_job" -> DiskFiles.nameIn(ofJob(writer).head), "owner_sink" -> DiskFiles.nameIn(ofJob(writer).last)))
  }

  private def folder(batch: Long): Path = root.resolve(prefix + batch)

  /** All that follows the first dot behind the writer's own name, `.snappy.parquet` say. */
  private def extension(name: String): String = {
    val rest = name.substring(writerId.length)
    rest.substring(rest.indexOf('.'))
  }

  private def removeLeftovers(batch: Long): Unit = {
    val names = Option(staging.toFile.list()).getOrElse(Array.empty[String])
    names.map(n => if (n.startsWith(".")) n.substring(1) -> n else n -> n)
      .filter { case (plain, _) => TaskPlace.belongsTo(plain, writerId, batch) }
      .foreach { case (_, n) => FilesCommit.deleteTree(new File(staging.toFile, n)) }
  }
}

object FilesCommit {
  private def deleteTree(file: File): Unit = {
    Option(file.listFiles).foreach(_.foreach(deleteTree))
    DiskFiles.deleteQuietly(file)
  }
}
