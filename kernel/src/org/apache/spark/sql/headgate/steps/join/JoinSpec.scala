package org.apache.spark.sql.headgate.steps.join

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.headgate.time.Saturating

/** What becomes of a row for which no match can come any more. */
sealed trait Unmatched
object Unmatched {
  case object Drop extends Unmatched
  /** It leaves with the pairs, with nulls for the other row. */
  case object Null extends Unmatched
  /** It leaves by a side output. */
  case object Side extends Unmatched

  def parse(text: String): Unmatched = text match {
    case "drop" => Drop
    case "null" => Null
    case "side" => Side
  }
}

/** Windows of a size that begin every `slide`, counted from an offset; in microseconds. */
case class JoinWindows(size: Long, slide: Long, offset: Long) {

  /**
   * The last microsecond of each window that a time falls into, the latest first. Windows that would end
   * after time itself end with it, and are one.
   */
  def lastTimes(time: Long): Iterator[Long] = {
    val newest = Saturating.minus(time, Math.floorMod(Math.floorMod(time, slide) - offset, slide))
    val ends = Iterator.iterate(newest)(Saturating.minus(_, slide)).map(Saturating.plus(_, size)).takeWhile(_ > time)
    var before = Long.MinValue
    ends.take(((size - 1) / slide + 1).toInt).filter { end => val other = end != before; before = end; other }.map(_ - 1)
  }
}

/**
 * What Python says of a join; all times in microseconds.
 *
 * Rows of the same key match if the right one's time minus the left one's is from `lower` to `upper`. In
 * a join in windows the time of a row is the last microsecond of its window, and both bounds are 0: so
 * rows match that are in the same window, and all else is as in a join in time.
 */
case class JoinSpec(step: String, keys: Int, lower: Long, upper: Long, windows: Option[JoinWindows],
    unmatched: Seq[Unmatched], position: String, time: String) {

  /** The times of a row's matches, counted from its own: the least and the greatest; by side. */
  def earliest(side: Int): Long = if (side == JoinSpec.Left) lower else -upper
  def latest(side: Int): Long = if (side == JoinSpec.Left) upper else -lower

  /** Whether a side's rows leave when they had no match. */
  def gives(side: Int): Boolean = unmatched(side) != Unmatched.Drop

  /** The latest time of a row that could match one of a side and time. */
  def lastMatch(side: Int, time: Long): Long = Saturating.plus(time, latest(side))

  /**
   * When a key is looked at whose rows are only to be forgotten, by the latest time of what could match
   * them: a little later, so that it is looked at once for several rows.
   */
  def rounded(time: Long): Long = {
    val grain = math.max(1L, (upper - lower) / JoinSpec.Grains)
    val over = Math.floorMod(time, grain)
    if (over == 0) time else Saturating.plus(time, grain - over)
  }

  def times(time: Long): Iterator[Long] = windows.fold(Iterator.single(time))(_.lastTimes(time))
}

object JoinSpec {
  val Left = 0
  val Right = 1
  val Key = "__hg_key"
  val Row = "__hg_row"
  val Input = "__hg_input"
  val Tie = "__hg_tie"
  val Output = "__hg_output"
  val LeftRow = "__hg_left"
  val RightRow = "__hg_right"
  private val Grains = 8

  def parse(text: String): JoinSpec = {
    val json = new ObjectMapper().readTree(text)
    def number(field: String) = json.get(field).asLong
    val windows = Option(json.get("windows")).filterNot(_.isNull).map(w =>
      JoinWindows(w.get("size").asLong, w.get("slide").asLong, w.get("offset").asLong))
    JoinSpec(json.get("step").asText, json.get("keys").asInt, number("lower"), number("upper"), windows,
      Seq("left_unmatched", "right_unmatched").map(f => Unmatched.parse(json.get(f).asText)),
      json.get("position").asText, json.get("time").asText)
  }
}
