/** Owns a log topic's folder: its partitions, its lock, and who may append where. */
package org.apache.spark.sql.headgate.sources.log

import java.nio.channels.FileChannel
import java.nio.file.{Files, NoSuchFileException, Path, StandardCopyOption, StandardOpenOption}
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap
import java.util.zip.CRC32

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.{DiskFiles, DiskSync, Marker}
import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}

/** What a writer's file says: its last batch, and where that batch's staged files belong. */
case class WriterRecord(marker: Marker, segments: Seq[(String, String)])

/** A topic on a disk that every process of the job can see.
  *
  * Offsets are decided under `append.lock`, a POSIX lock that Python takes as well. Whoever holds
  * it first finishes what a crashed writer has committed but not yet renamed, because those offsets
  * are taken although no listing shows them.
  */
final class Topic(val root: Path) {
  private val settings = root.resolve("topic.json")
  private val writers = root.resolve("_writers")
  val staging: Path = root.resolve("_staging")

  def exists: Boolean = Files.isRegularFile(settings)

  def partitions: Int =
    try Topic.mapper.readTree(Files.readAllBytes(settings)).get("partitions").asInt
    catch { case _: NoSuchFileException => throw Topic.missing(root) }

  /** Made with the topic; empty for one that an older version made. */
  def id: String =
    try Topic.mapper.readTree(Files.readAllBytes(settings)).path("id").asText("")
    catch { case _: NoSuchFileException => throw Topic.missing(root) }

  def partition(p: Int): Path = root.resolve(Topic.partitionName(p))

  /** Creates the topic unless it is there already, whoever else tries the same just now. */
  def createIfMissing(count: Int): Unit = if (!exists) {
    require(count > 0, s"a topic has at least one partition, not $count: $root")
    DiskSync.createFolders(root)
    locked {
      if (!exists) {
        (0 until count).foreach(p => Files.createDirectories(partition(p)))
        Files.createDirectories(staging)
        val json = JsonNodeFactory.instance.objectNode().put("version", 1).put("partitions", count)
          .put("id", UUID.randomUUID().toString)
        DiskFiles.writeAtomically(settings, json.toString, fsync = true)
      }
    }
  }

  /** The segments of a partition in offset order, as the folder lists them now. */
  def segments(p: Int): Array[Segment] = {
    val names = partition(p).toFile.list()
    if (names == null) Array.empty
    else names.map(Segment.parse).filter(_ != null).sortBy(_.base)
  }

  /** Runs `body` as the only appender, after finishing what crashed appenders left. */
  def locked[T](body: => T): T = {
    val path = root.resolve("append.lock")
    // A POSIX lock belongs to the process: threads of this one exclude each other here.
    Topic.monitors.computeIfAbsent(path.toAbsolutePath.toString, _ => new Object).synchronized {
      val channel = FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE)
      try {
        channel.lock()
        finishPending()
        body
      } finally channel.close()
    }
  }

  def readWriter(id: String): Option[WriterRecord] =
    try {
      val json = Topic.mapper.readTree(Files.readAllBytes(writerFile(id)))
      val segments = json.get("segments").elements.asScala
        .map(s => s.get("staged").asText -> s.get("final").asText).toSeq
      Some(WriterRecord(Marker.read(json), segments))
    } catch { case _: NoSuchFileException => None }

  /** The commit point of a writer's batch: from here on its segments belong to the topic. */
  def writeWriter(id: String, record: WriterRecord, fsync: Boolean): Unit = {
    if (fsync) DiskSync.createFolders(writers) else Files.createDirectories(writers)
    val json = record.marker.writeTo(JsonNodeFactory.instance.objectNode())
    val list = json.putArray("segments")
    record.segments.foreach { case (staged, target) =>
      list.addObject().put("staged", staged).put("final", target)
    }
    DiskFiles.writeAtomically(writerFile(id), json.toString, fsync)
  }

  /** Renames a writer's staged files in, those that are still staged. */
  def rename(record: WriterRecord, fsync: Boolean): Unit = {
    val folders = record.segments.flatMap { case (staged, target) =>
      val to = root.resolve(target)
      Files.createDirectories(to.getParent)
      try {
        Files.move(root.resolve(staged), to, StandardCopyOption.ATOMIC_MOVE)
        Some(to.getParent)
      } catch { case _: NoSuchFileException => None }
    }
    if (fsync) folders.distinct.foreach(DiskFiles.sync)
  }

  private def finishPending(): Unit = {
    val staged = staging.toFile.list()
    val files = writers.toFile.list()
    if (staged != null && staged.nonEmpty && files != null) {
      files.filter(_.endsWith(".json")).sorted.foreach { file =>
        readWriter(file.stripSuffix(".json")).foreach(rename(_, fsync = true))
      }
    }
  }

  private def writerFile(id: String): Path = writers.resolve(id + ".json")
}

object Topic {
  private val mapper = new ObjectMapper()
  private val monitors = new ConcurrentHashMap[String, Object]()

  def at(path: String): Topic = new Topic(DiskFiles.path(path))

  def partitionName(p: Int): String = f"partition-$p%05d"

  /** Which partition a key belongs to: the same here and in Python, for as long as topics live.
    *
    * CRC-32 of the key's UTF-8, then Murmur3's final mix, as an unsigned number, modulo.
    */
  def partitionOf(key: Array[Byte], from: Int, count: Int, partitions: Int): Int = {
    val crc = new CRC32()
    crc.update(key, from, count)
    var h = crc.getValue.toInt
    h ^= h >>> 16
    h *= 0x85ebca6b
    h ^= h >>> 13
    h *= 0xc2b2ae35
    h ^= h >>> 16
    Integer.remainderUnsigned(h, partitions)
  }

  def missing(root: Path): CodedStateException =
    new CodedStateException(Coded("TOPIC_MISSING", "path" -> root))
}
