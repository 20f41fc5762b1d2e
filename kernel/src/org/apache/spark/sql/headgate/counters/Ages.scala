/** Owns how old the records of a source were when their batch began. */
package org.apache.spark.sql.headgate.counters

import java.lang.{Long => JLong}
import java.util.Arrays

import scala.collection.mutable

import org.apache.spark.TaskContext
import org.apache.spark.util.AccumulatorV2

/**
 * A histogram of ages in milliseconds, as exact as a [[StepCounter]]: a partition that runs again
 * overwrites its own.
 *
 * The first buckets are a millisecond wide, each power of two after them has eight: a bucket is at most an
 * eighth as wide as its ages are long.
 */
final class Ages extends AccumulatorV2[JLong, Map[Int, Long]] {
  private var buckets = new Array[Long](0)
  private var partition = -1
  private val perPartition = mutable.LongMap.empty[Array[Long]]

  def saw(ageMs: Long): Unit = {
    if (partition < 0) partition = TaskContext.getPartitionId()
    val at = Ages.bucket(ageMs)
    if (at >= buckets.length) buckets = Arrays.copyOf(buckets, at + 1)
    buckets(at) += 1
  }

  override def add(ageMs: JLong): Unit = saw(ageMs.longValue)
  override def isZero: Boolean = buckets.isEmpty && perPartition.isEmpty
  override def reset(): Unit = { buckets = new Array[Long](0); partition = -1; perPartition.clear() }
  override def copy(): Ages = {
    val c = new Ages
    c.buckets = buckets.clone(); c.partition = partition; c.perPartition ++= perPartition
    c
  }
  override def merge(other: AccumulatorV2[JLong, Map[Int, Long]]): Unit = other match {
    case o: Ages =>
      if (o.partition >= 0) perPartition(o.partition.toLong) = o.buckets
      o.perPartition.foreach { case (p, of) => perPartition(p) = of }
    case o => throw new IllegalArgumentException(s"not Ages: ${o.getClass.getName}")
  }
  override def value: Map[Int, Long] = perPartition.valuesIterator.foldLeft(Ages.counts(buckets)) { (sum, of) =>
    Ages.counts(of).foldLeft(sum) { case (s, (at, n)) => s.updated(at, s.getOrElse(at, 0L) + n) }
  }
}

object Ages {
  private val Single = 16
  private val Parts = 3

  /** The bucket of an age; a record that is newer than the batch's time has none. */
  def bucket(ageMs: Long): Int =
    if (ageMs < Single) math.max(ageMs, 0L).toInt
    else {
      val power = 63 - JLong.numberOfLeadingZeros(ageMs)
      val part = (ageMs >>> (power - Parts)).toInt & ((1 << Parts) - 1)
      Single + ((power - 4) << Parts) + part
    }

  private def counts(of: Array[Long]): Map[Int, Long] =
    of.iterator.zipWithIndex.collect { case (n, at) if n > 0 => at -> n }.toMap
}
