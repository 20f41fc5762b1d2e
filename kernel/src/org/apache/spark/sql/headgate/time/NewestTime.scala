/** Owns the newest event time that the rows of a source showed in a batch. */
package org.apache.spark.sql.headgate.time

import java.lang.{Long => JLong}

import org.apache.spark.util.AccumulatorV2

/** How many rows came, and the newest of their times in microseconds; a retried task changes nothing
  * of whether there were any, nor of the newest. */
final class NewestTime extends AccumulatorV2[JLong, JLong] {
  private var count = 0L
  private var newest = Long.MinValue

  def saw(): Unit = count += 1
  def saw(micros: Long): Unit = { count += 1; if (micros > newest) newest = micros }

  def rows: Long = count
  def newestMs: Option[Long] = if (newest == Long.MinValue) None else Some(Math.floorDiv(newest, 1000L))

  override def add(micros: JLong): Unit = saw(micros.longValue)
  override def isZero: Boolean = count == 0
  override def reset(): Unit = { count = 0; newest = Long.MinValue }
  override def copy(): NewestTime = { val c = new NewestTime; c.count = count; c.newest = newest; c }
  override def merge(other: AccumulatorV2[JLong, JLong]): Unit = other match {
    case o: NewestTime => count += o.count; newest = math.max(newest, o.newest)
    case o => throw new IllegalArgumentException(s"not a NewestTime: ${o.getClass.getName}")
  }
  override def value: JLong = newest
}
