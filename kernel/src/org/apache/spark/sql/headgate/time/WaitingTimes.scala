/** Owns how far rows that wait let the watermark go. */
package org.apache.spark.sql.headgate.time

import java.lang.{Long => JLong}

import org.apache.spark.util.AccumulatorV2

/**
 * What is known of the rows that wait in a step; all times in milliseconds.
 *
 * @param least the event time of the first of those that hold the watermark
 * @param until when that one leaves at the latest, by the clock
 */
final case class Waiting(rows: Long, least: Option[Long], until: Option[Long])

/** The least event time, in microseconds, of a step's waiting rows, and the deadline of that row; a
  * task that is tried again sees the same. */
final class WaitingTimes extends AccumulatorV2[JLong, JLong] {
  private var least = Long.MaxValue
  private var deadline = Long.MaxValue

  def saw(micros: Long, until: Long): Unit =
    if (micros < least || micros == least && until > deadline) { least = micros; deadline = until }

  def leastMs: Option[Long] = if (isZero) None else Some(Math.floorDiv(least, 1000L))
  /** None also if no clock decides when the row leaves. */
  def until: Option[Long] = if (isZero || deadline == Long.MaxValue) None else Some(deadline)

  override def add(micros: JLong): Unit = saw(micros, Long.MinValue)
  override def isZero: Boolean = least == Long.MaxValue
  override def reset(): Unit = { least = Long.MaxValue; deadline = Long.MaxValue }
  override def copy(): WaitingTimes = { val c = new WaitingTimes; c.least = least; c.deadline = deadline; c }
  override def merge(other: AccumulatorV2[JLong, JLong]): Unit = other match {
    case o: WaitingTimes => if (!o.isZero) saw(o.least, o.deadline)
    case o => throw new IllegalArgumentException(s"not a WaitingTimes: ${o.getClass.getName}")
  }
  override def value: JLong = least
}
