package org.apache.spark.sql.headgate.time

/** Sums of times that stay at the ends of a Long instead of going round: the end of time is far enough. */
object Saturating {
  def plus(a: Long, b: Long): Long = {
    val sum = a + b
    if (((a ^ sum) & (b ^ sum)) < 0) (if (a < 0) Long.MinValue else Long.MaxValue) else sum
  }

  def minus(a: Long, b: Long): Long = {
    val rest = a - b
    if (((a ^ b) & (a ^ rest)) < 0) (if (a < 0) Long.MinValue else Long.MaxValue) else rest
  }

  def times(a: Long, b: Long): Long = {
    val high = Math.multiplyHigh(a, b)
    val low = a * b
    if (high == 0 && low >= 0 || high == -1 && low < 0) low
    else if ((a < 0) == (b < 0)) Long.MaxValue else Long.MinValue
  }

  /** Microseconds of milliseconds. */
  def micros(millis: Long): Long = times(millis, 1000L)
}
