/** Owns the rule by which the watermarks of a job's sources make the job's. */
package org.apache.spark.sql.headgate.time

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import org.apache.spark.sql.headgate.counters.StepCounter

/**
 * What is known of a source; all times in milliseconds.
 *
 * @param delay     how far its rows may be out of order
 * @param idleAfter how long it may give no rows and still hold the job's watermark; none: for ever
 * @param watermark the newest time of its rows less the delay
 * @param rowsAt    the batch time of the last batch with rows of it
 * @param since     where its silence is counted from: `rowsAt`, or the first batch that it was part of
 */
final case class SourceTime(delay: Long, idleAfter: Option[Long], watermark: Option[Long],
    rowsAt: Option[Long], since: Option[Long]) {
  /** When it became idle, if it gave no rows until `known`. */
  def idleSince(known: Option[Long]): Option[Long] =
    for (after <- idleAfter; from <- since; until <- known if until - from >= after) yield from + after
}

/**
 * The event time of a job while its query runs (driver only, on the query's thread).
 *
 * A source is idle only if Spark looked and it had nothing: a long batch is no silence, and neither is
 * the time in which the job was down if rows were waiting. So silence counts until `known`, the time of
 * the last batch, for which Spark looked at all sources.
 */
final class JobTime private (private var sources: Map[String, SourceTime],
    private var waiting: Map[String, Waiting], private var known: Option[Long]) {
  private val watched = mutable.ArrayBuffer.empty[(String, NewestTime)]
  private val watchedSteps = mutable.LinkedHashMap.empty[String, (WaitingTimes, StepCounter, StepCounter)]

  /** What a node of the plan sees of a source in the batch that is under way. */
  def watch(source: String, times: NewestTime): Unit = watched.synchronized(watched += source -> times)

  /** What a step sees of the rows that wait in it: their times, those that came, those that left. */
  def watchWaiting(step: String, times: WaitingTimes, added: StepCounter, removed: StepCounter): Unit =
    watched.synchronized(watchedSteps(step) = (times, added, removed))

  /** A batch of this time has what the watched nodes saw. */
  def batchEnds(time: Long): Unit = {
    waiting = waiting ++ watchedSteps.map { case (step, (times, added, removed)) =>
      val rows = waiting.get(step).fold(0L)(_.rows) + added.value - removed.value
      step -> Waiting(rows, times.leastMs, times.until)
    }
    watchedSteps.clear()
    val seen = watched.toSeq.groupMap(_._1)(_._2)
    watched.clear()
    known = Some(time)
    sources = sources.map { case (name, s) =>
      val now = seen.getOrElse(name, Nil)
      if (!now.exists(_.rows > 0)) name -> s.copy(since = s.since.orElse(Some(time)))
      else {
        val newest = now.flatMap(_.newestMs).map(Saturating.minus(_, s.delay)) ++ s.watermark
        name -> s.copy(watermark = newest.maxOption, rowsAt = Some(time), since = Some(time))
      }
    }
  }

  /**
   * The least watermark of the sources that are not idle; none while one of them has none. If all are
   * idle, nobody can be waited for: the greatest, as in Flink. Rows that wait hold it at their time.
   */
  def watermark: Option[Long] = watermarkAt(known)

  /** What it would be if a batch found now that those without rows still have none. */
  def watermarkIfStill(now: Long): Option[Long] = watermarkAt(Some(now))

  /** The watermark of one source by itself; the end of time if it is idle, since nobody waits for it then. */
  def mark(source: String): Option[Long] = markAt(source, known)

  /** What it would be if a batch found now that the source still has no rows. */
  def markIfStill(source: String, now: Long): Option[Long] = markAt(source, Some(now))

  private def markAt(source: String, until: Option[Long]): Option[Long] = sources.get(source).flatMap { s =>
    if (s.idleSince(until).isDefined) Some(Long.MaxValue) else s.watermark
  }

  /** The newest time that a source has shown. */
  def newest(source: String): Option[Long] =
    sources.get(source).flatMap(s => s.watermark.map(Saturating.plus(_, s.delay)))

  private def watermarkAt(until: Option[Long]): Option[Long] = {
    val counting = sources.values.filter(_.idleSince(until).isEmpty)
    val marked =
      if (counting.isEmpty) sources.values.flatMap(_.watermark).maxOption
      else if (counting.exists(_.watermark.isEmpty)) None
      else Some(counting.map(_.watermark.get).min)
    marked.map(mark => (waiting.values.flatMap(_.least) ++ Seq(mark)).min)
  }

  /** For the journal; from it the checkpoint's record has it, and the next start from the record. */
  def toJson(current: Long, next: Long, ended: Boolean): String = {
    val root = JobTime.mapper.createObjectNode()
    def put(node: com.fasterxml.jackson.databind.node.ObjectNode, name: String, value: Option[Long]) =
      value.fold(node.putNull(name))(node.put(name, _))
    put(root, "at", known)
    put(root, "watermark", Some(current).filter(_ > 0))
    put(root, "next", Some(next).filter(_ > 0))
    root.put("ended", ended)
    val all = root.putObject("sources")
    sources.toSeq.sortBy(_._1).foreach { case (name, s) =>
      val node = all.putObject(name)
      put(node, "watermark", s.watermark)
      put(node, "rows_at", s.rowsAt)
      put(node, "since", s.since)
      put(node, "idle_after", s.idleAfter)
      put(node, "idle_since", s.idleSince(known))
    }
    val steps = root.putObject("waiting")
    waiting.toSeq.filter(_._2.rows > 0).sortBy(_._1).foreach { case (step, w) =>
      val node = steps.putObject(step)
      node.put("rows", w.rows)
      put(node, "least", w.least)
      put(node, "until", w.until)
    }
    root.toString
  }
}

object JobTime {
  private val mapper = new ObjectMapper()

  /**
   * @param text    `at` and `sources`: name to `delay`, `idle_after`, and where it was: `watermark`,
   *                `rows_at`, `since`; null or left out where there is nothing. `waiting`: step to
   *                `rows`, `least`, `until`, as they stand in the journal
   * @param advance watermarks that sources have at least, as if rows had come (tests)
   */
  def parse(text: String, advance: String): JobTime = {
    def number(node: JsonNode, name: String) = Option(node.get(name)).filterNot(_.isNull).map(_.asLong)
    val json = mapper.readTree(text)
    val ahead = mapper.readTree(advance)
    val sources = Option(json.get("sources")).toSeq.flatMap(_.properties().asScala).map { entry =>
      val (name, node) = (entry.getKey, entry.getValue)
      val kept = SourceTime(number(node, "delay").getOrElse(0L), number(node, "idle_after"),
        number(node, "watermark"), number(node, "rows_at"), number(node, "since"))
      val to = number(ahead, name).filter(t => kept.watermark.forall(_ < t))
      name -> to.fold(kept)(t => kept.copy(watermark = Some(t), since = None))
    }
    val waiting = Option(json.get("waiting")).toSeq.flatMap(_.properties().asScala).map { entry =>
      val node = entry.getValue
      entry.getKey -> Waiting(number(node, "rows").getOrElse(0L), number(node, "least"), number(node, "until"))
    }
    new JobTime(sources.toMap, waiting.toMap, number(json, "at"))
  }
}
