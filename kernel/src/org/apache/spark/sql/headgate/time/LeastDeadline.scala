package org.apache.spark.sql.headgate.time

import java.lang.{Long => JLong}

import org.apache.spark.util.AccumulatorV2

/** The earliest deadline over all partitions, known to the driver after the batch. */
final class LeastDeadline extends AccumulatorV2[JLong, JLong] {
  private var least = Long.MaxValue
  override def isZero: Boolean = least == Long.MaxValue
  override def copy(): LeastDeadline = { val c = new LeastDeadline; c.least = least; c }
  override def reset(): Unit = least = Long.MaxValue
  override def add(at: JLong): Unit = least = math.min(least, at)
  override def merge(o: AccumulatorV2[JLong, JLong]): Unit = least = math.min(least, o.value)
  override def value: JLong = least
}
