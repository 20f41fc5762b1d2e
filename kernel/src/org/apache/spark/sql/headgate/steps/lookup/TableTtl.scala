package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.headgate.spark.RunningBatch
import org.apache.spark.sql.headgate.time.Saturating

/**
 * When the rows of a table are forgotten, in one batch; all times in microseconds.
 *
 * Both clocks stand in the offset log, so that a replayed batch forgets the same rows. A drain ends
 * event time for windows alone: its last batch has the watermark that its rows have made.
 *
 * @param length how long after its last update a row is there
 * @param time   the event time of rows; none: an update has the time of its batch
 * @param now    the watermark or the time of this batch; the least Long while there is no watermark
 * @param before that of the batch before, in which all that was over has been forgotten; none if the
 *               query was started with this batch
 */
case class TableTtl(length: Long, time: Option[Attribute], now: Long, before: Option[Long]) {
  /** From when on a row is over that was updated at a time. */
  def end(updated: Long): Long = Saturating.plus(updated, length)
  def isOver(end: Long): Boolean = end <= now
}

object TableTtl {
  /** The end of rows whose time is not known: they are there until they are updated or deleted. */
  val Never: Long = Long.MaxValue
  private val NoWatermark = Long.MinValue

  def of(millis: Long, time: Option[Attribute], batch: Option[RunningBatch]): TableTtl = {
    def mark(ms: Long) = if (ms > 0) Saturating.micros(ms) else NoWatermark
    val now = batch.fold(NoWatermark)(b => if (time.isDefined) mark(b.watermarkMs) else Saturating.micros(b.timeMs))
    val before = batch.filterNot(_.isFirst).flatMap { b =>
      if (time.isDefined) Some(mark(b.watermarkBeforeMs)) else b.timeBeforeMs.map(Saturating.micros)
    }
    TableTtl(Saturating.micros(millis), time, now, before.filter(_ > NoWatermark))
  }
}
