/** Owns the record of how many partitions a sink's topic had, batch by batch. */
package org.apache.spark.sql.headgate.sinks.pulsar

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.commit.{DiskFiles, HomeFiles}

/** From a batch on: partitions of the topic (0: it has none), and tasks of the write. */
private[headgate] case class Layout(fromBatch: Long, partitions: Int, tasks: Int)

/** A file in the run's journal folder. A row's partition and so its producer depend on how many
  * partitions there are: a batch that is replayed must find those of its first attempt, also when
  * the topic has grown meanwhile. So the number is written down before the first batch with it.
  */
private[headgate] final class Layouts(journal: String, sink: String) {
  require(journal.nonEmpty, s"sink '$sink': exactly once needs a journal folder")

  private val folder = HomeFiles.at(journal)
  private val file = s"pulsar-${DiskFiles.fileName(sink)}.json"

  def read(): Seq[Layout] =
    folder.read(file).toSeq.flatMap { bytes =>
      new ObjectMapper().readTree(bytes).get("layouts").elements.asScala.map { l =>
        Layout(l.get("from_batch").asLong, l.get("partitions").asInt, l.get("tasks").asInt)
      }
    }

  /** The layout of a batch.
    *
    * A topic that has grown is used so from the next batch on: this one may be a replay.
    *
    * @param look whether to see if the topic has grown
    * @param now asks for the partitions that the topic has at this moment
    */
  def of(batch: Long, tasks: Int, look: Boolean, now: () => Int): Layout = {
    val known = read()
    val found = known.filter(_.fromBatch <= batch).lastOption.getOrElse(Layout(batch, now(), tasks))
    val current = found.copy(tasks = math.max(found.tasks, tasks))
    val before = known.filter(_.fromBatch < current.fromBatch) :+ current
    val after = known.filter(_.fromBatch > current.fromBatch)
    val latest = after.lastOption.getOrElse(current).partitions
    val grown =
      if (!look || latest == 0 || now() <= latest) after
      else after.filter(_.fromBatch <= batch) :+ Layout(batch + 1, now(), current.tasks)
    if (before ++ grown != known) write(before ++ grown)
    current
  }

  private def write(layouts: Seq[Layout]): Unit = {
    val json = JsonNodeFactory.instance.objectNode().put("version", 1)
    val list = json.putArray("layouts")
    layouts.foreach { l =>
      list.addObject().put("from_batch", l.fromBatch).put("partitions", l.partitions)
        .put("tasks", l.tasks)
    }
    folder.write(file, json.toString, fsync = true)
  }
}
