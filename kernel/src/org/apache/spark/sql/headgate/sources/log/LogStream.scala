/** Owns reading a topic in micro-batches: where a batch starts and ends, and what it is made of. */
package org.apache.spark.sql.headgate.sources.log

import java.util.{Map => JMap, Optional}

import scala.util.control.NonFatal

import org.apache.spark.sql.connector.read.{InputPartition, PartitionReaderFactory}
import org.apache.spark.sql.connector.read.streaming._
import org.apache.spark.sql.headgate.batch.{TellsOfRecords, TopicReplacedException}
import org.apache.spark.sql.headgate.failures.Coded

/** Where a source that has no position yet starts. */
case class LogOptions(path: String, starting: String, maxRecords: Long) {
  require(
    starting == "earliest" || starting == "latest" || starting.matches("[0-9]{1,18}"),
    s"starting: earliest, latest or milliseconds since 1970, not '$starting'")
  require(maxRecords >= 0, s"max_records: a number from 0 (no limit), not $maxRecords")
}

/** The records of some segments of one partition, offsets from until to. */
case class LogInputPartition(
    folder: String,
    partition: Int,
    from: Long,
    to: Long,
    segments: Array[Segment])
  extends InputPartition

/** A topic as a stream.
  *
  * A batch always has one Spark partition per topic partition, in order, also for an empty range:
  * so a replayed batch has the same task numbers, which sinks without a key write by.
  */
final class LogStream(options: LogOptions, metadataPath: String)
  extends MicroBatchStream with SupportsTriggerAvailableNow with ReportsSourceMetrics with TellsOfRecords {

  private val topic = Topic.at(options.path)
  if (!topic.exists) throw Topic.missing(topic.root)
  private val id = topic.id
  private val listing = new TopicListing(topic)

  // With the availableNow trigger: the end of the topic when the query started.
  private var frozen: Option[LogOffset] = None
  private var latest: Option[LogOffset] = None

  // None for a batch read, which has no checkpoint to go back to.
  private val first =
    if (metadataPath.isEmpty) None else Some(new InitialOffset(metadataPath, topic.root.toString))

  /** Decided once, whatever is appended meanwhile. */
  override lazy val initialOffset: Offset = first.flatMap(_.read()).getOrElse {
    listing.refresh()
    val offset = LogOffset.of((0 until listing.count).map { p =>
      p -> (options.starting match {
        case "earliest" => listing.start(p)
        case "latest" => listing.end(p)
        case millis => listing.at(p, millis.toLong)
      })
    })
    first.foreach(_.write(offset))
    offset
  }

  override def prepareForTriggerAvailableNow(): Unit = {
    listing.refresh()
    frozen = Some(end)
  }

  override def getDefaultReadLimit: ReadLimit =
    if (options.maxRecords == 0) ReadLimit.allAvailable() else ReadLimit.maxRows(options.maxRecords)

  override def latestOffset(): Offset =
    throw new UnsupportedOperationException("latestOffset(start, limit) is the one to call")

  override def latestOffset(startOffset: Offset, limit: ReadLimit): Offset = {
    checkIsTheSame()
    listing.refresh()
    latest = Some(end)
    val start = startOffset.asInstanceOf[LogOffset]
    start.next.foreach { case (p, o) => listing.checkReached(p, o) }
    val target = frozen.getOrElse(end)
    limit match {
      case rows: ReadMaxRows => LogStream.limited(start, target, rows.maxRows())
      case _ => LogStream.atLeast(start, target)
    }
  }

  override def hasRecordsBehind(seen: Offset): Boolean =
    try {
      listing.refresh()
      val reached = deserializeOffset(seen.json).asInstanceOf[LogOffset]
      (0 until listing.count).exists(p => listing.end(p) > reached(p))
    } catch { case NonFatal(_) => false } // Spark's look says what is wrong

  override def reportLatestOffset(): Offset = latest.orNull

  override def metrics(consumed: Optional[Offset]): JMap[String, String] = {
    val behind = for {
      end <- latest
      at <- Option(consumed.orElse(null))
    } yield {
      val reached = LogOffset.parse(at.json)
      end.next.map { case (p, o) => o - reached(p) }.sum
    }
    behind.map(n => JMap.of("recordsBehindLatest", n.toString)).getOrElse(JMap.of())
  }

  override def planInputPartitions(start: Offset, end: Offset): Array[InputPartition] = {
    checkIsTheSame()
    val from = start.asInstanceOf[LogOffset]
    val to = end.asInstanceOf[LogOffset]
    val unknown = to.next.exists { case (p, o) => p >= listing.count || o > listing.end(p) }
    if (unknown) listing.refresh()
    to.next.toArray.map { case (p, o) => LogStream.inputPartition(topic, listing, p, from(p), o) }
  }

  /** A topic that was deleted and made again has other records at the same offsets. */
  private def checkIsTheSame(): Unit = {
    val now = topic.id
    if (now != id) throw new TopicReplacedException(
      Coded("TOPIC_REPLACED", "address" -> toString, "was" -> id, "is" -> now))
  }

  override def createReaderFactory(): PartitionReaderFactory = SegmentReaderFactory

  override def deserializeOffset(json: String): Offset = LogOffset.parse(json)

  override def commit(end: Offset): Unit = ()

  override def stop(): Unit = ()

  override def toString: String = s"log:${topic.root}"

  private def end: LogOffset = LogOffset.of((0 until listing.count).map(p => p -> listing.end(p)))
}

object LogStream {

  def inputPartition(
      topic: Topic, listing: TopicListing, p: Int, from: Long, to: Long): InputPartition =
    LogInputPartition(topic.partition(p).toString, p, from, to, listing.covering(p, from, to))

  /** `end`, but never behind `start`. */
  def atLeast(start: LogOffset, end: LogOffset): LogOffset =
    LogOffset.of(
      (end.next.keySet ++ start.next.keySet).toSeq.map(p => p -> math.max(start(p), end(p))))

  /** At most `limit` records: every partition gets its equal share, and what a short one leaves
    * over goes to the others. Decided by the offsets alone.
    */
  def limited(start: LogOffset, end: LogOffset, limit: Long): LogOffset = {
    val full = atLeast(start, end)
    val available = full.next.map { case (p, o) => p -> (o - start(p)) }
    var rest = limit
    var left = available.size
    val taken = available.toSeq.sortBy { case (p, n) => (n, p) }.map { case (p, n) =>
      val share = math.min(n, (rest + left - 1) / left)
      rest -= share
      left -= 1
      p -> (start(p) + share)
    }
    LogOffset.of(taken)
  }
}
