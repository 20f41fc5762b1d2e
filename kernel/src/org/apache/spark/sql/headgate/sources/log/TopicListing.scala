/** Owns what a reader knows of a topic's segments, refreshed without parsing all names again. */
package org.apache.spark.sql.headgate.sources.log

import java.nio.file.Files
import java.util.concurrent.TimeUnit.NANOSECONDS

import scala.collection.mutable

import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}

/** The segments of a topic as of the last [[refresh]]; they are immutable, so known ones are kept. */
final class TopicListing(topic: Topic) {
  import TopicListing._

  private final class Known {
    var segments: Array[Segment] = Array.empty
    val byName = mutable.HashMap.empty[String, Segment]
    var modified = -1L
    var seenAt = 0L
    var settled = false
  }

  private val partitions = mutable.ArrayBuffer.empty[Known]

  /** Looks again, at partitions that were added as well. */
  def refresh(): Unit = synchronized {
    val count = topic.partitions
    while (partitions.length < count) partitions += new Known
    partitions.indices.foreach(p => refresh(p, partitions(p)))
  }

  def count: Int = synchronized(partitions.length)

  /** The first offset that can still be read. */
  def start(p: Int): Long =
    synchronized(partitions(p).segments.headOption.map(_.base).getOrElse(0L))

  /** The offset behind the last record. */
  def end(p: Int): Long =
    synchronized(partitions(p).segments.lastOption.map(_.end).getOrElse(0L))

  /** The offset of the first record appended at or after a time. */
  def at(p: Int, millis: Long): Long = synchronized {
    partitions(p).segments.find(_.millis >= millis).map(_.base).getOrElse(end(p))
  }

  /** The segments that hold offsets from until to, which must all be there. */
  def covering(p: Int, from: Long, to: Long): Array[Segment] = synchronized {
    if (from >= to) return Array.empty
    if (p >= partitions.length || from < start(p) || to > end(p)) throw gone(p, from, to)
    val all = partitions(p).segments
    // The last segment that starts at or before `from`.
    var low = 0
    var high = all.length - 1
    while (low < high) {
      val middle = (low + high + 1) >>> 1
      if (all(middle).base <= from) low = middle else high = middle - 1
    }
    all.slice(low, all.length).takeWhile(_.base < to)
  }

  /** A topic that ends before an offset already read is not the topic that was read. */
  def checkReached(p: Int, offset: Long): Unit = synchronized {
    if (offset > 0 && (p >= partitions.length || offset > end(p))) throw gone(p, offset, offset)
  }

  private def refresh(p: Int, known: Known): Unit = {
    val folder = topic.partition(p)
    val modified =
      if (Files.isDirectory(folder)) Files.getLastModifiedTime(folder).to(NANOSECONDS) else 0L
    val now = System.nanoTime()
    if (modified != known.modified) {
      known.modified = modified
      known.seenAt = now
      known.settled = false
    } else if (known.settled) return
    // A folder's time is coarse: only a listing taken well after it last moved can be relied on.
    known.settled = now - known.seenAt > SettleNanos
    list(p, known)
  }

  /** A listing that runs while files are renamed in may see a later one and miss an earlier one; a
    * new listing sees both. Only a hole that stays is an error.
    */
  private def list(p: Int, known: Known): Unit = {
    var attempt = 0
    var hole: (Long, Long) = null
    while (attempt < Attempts) {
      if (attempt > 1) Thread.sleep(attempt * 5L)
      val names = Option(topic.partition(p).toFile.list()).getOrElse(Array.empty[String])
      val segments = names.map(n => known.byName.getOrElse(n, Segment.parse(n)) -> n)
        .filter(_._1 != null).sortBy(_._1.base)
      hole = holeIn(segments.map(_._1))
      if (hole == null) {
        known.byName.clear()
        segments.foreach { case (s, n) => known.byName(n) = s }
        known.segments = segments.map(_._1)
        return
      }
      attempt += 1
    }
    throw new CodedStateException(Coded("OFFSET_HOLE",
      "path" -> topic.root, "partition" -> p, "after" -> hole._1, "next" -> hole._2))
  }

  private def holeIn(segments: Array[Segment]): (Long, Long) = {
    var i = 1
    while (i < segments.length) {
      if (segments(i - 1).end != segments(i).base) return (segments(i - 1).end, segments(i).base)
      i += 1
    }
    null
  }

  private def gone(p: Int, from: Long, to: Long): CodedStateException = {
    val known = p < partitions.length
    new CodedStateException(Coded("OFFSET_GONE",
      "path" -> topic.root, "partition" -> p, "from" -> from, "to" -> to,
      "first" -> (if (known) start(p) else 0L), "end" -> (if (known) end(p) else 0L)))
  }
}

private object TopicListing {
  val SettleNanos = 2000000000L
  val Attempts = 12
}
