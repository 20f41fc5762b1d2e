package org.apache.spark.sql.headgate.steps.core

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.{GeneratedCode, StateStore, StoredPairs}
import org.apache.spark.sql.types._

/**
 * The times at which keys are to be looked at by one clock, in order.
 *
 * @param known no time in the store is less
 */
final class TimeStore(store: StateStore, keyTypes: Seq[DataType], known: Long) {
  private val timed = GeneratedCode.projection(Seq(
    BoundReference(keyTypes.length, LongType, nullable = false),
    BoundReference(keyTypes.length + 1, IntegerType, nullable = false)) ++
    keyTypes.zipWithIndex.map { case (t, i) => BoundReference(i, t, nullable = true) })
  private val keyOf = GeneratedCode.projection(keyTypes.zipWithIndex.map { case (t, i) =>
    BoundReference(i + 2, t, nullable = true)
  })
  private val none = GeneratedCode.projection(Array[DataType](BooleanType)).apply(InternalRow(null)).copy()
  private val pair = new GenericInternalRow(2)
  private val joined = new JoinedRow
  private val noKey = new GenericInternalRow(keyTypes.length)
  private var from = known

  /** No time in the store is less. */
  def least: Long = from

  private def scan(): StoredPairs =
    if (from == Long.MinValue) store.iterator()
    // a time that is too early by one comes before all that have this time, whatever their keys
    else store.rangeScan(Some(at(noKey, from - 1, 0)), None)

  private def at(key: InternalRow, time: Long, timer: Int): UnsafeRow = {
    pair.setLong(0, time)
    pair.setInt(1, timer)
    timed(joined(key, pair))
  }

  def put(key: UnsafeRow, time: Long, timer: Int): Unit = {
    store.put(at(key, time, timer), none)
    from = math.min(from, time)
  }
  def remove(key: UnsafeRow, time: Long, timer: Int): Unit = store.remove(at(key, time, timer))

  /**
   * What is due, earliest first: a key, its time and the timer's number. What `take` does not know is
   * removed.
   */
  def due(limit: Long)(take: (UnsafeRow, Long, Int) => Boolean): Unit = {
    val unknown = mutable.ArrayBuffer.empty[UnsafeRow]
    val times = scan()
    try {
      var more = true
      while (more && times.hasNext) {
        val entry = times.next().key
        if (entry.getLong(0) > limit) more = false
        else if (!take(keyOf(entry), entry.getLong(0), entry.getInt(1))) unknown += entry.copy()
      }
    } finally times.close()
    unknown.foreach(store.remove(_))
  }

  /**
   * What `rows` makes of all that is due, earliest first: of a key, its time and the timer's number.
   * All of it is to be taken, and what has been taken is in the store no more.
   */
  def take(limit: Long)(rows: (UnsafeRow, Long, Int) => Iterator[InternalRow]): Iterator[InternalRow] = {
    val times = scan()
    val entries = Iterator.continually {
      val entry = if (times.hasNext) times.next().key else null
      if (entry != null && entry.getLong(0) <= limit) entry.copy() else { times.close(); null }
    }
    entries.takeWhile(_ != null).flatMap { entry =>
      store.remove(entry)
      rows(keyOf(entry).copy(), entry.getLong(0), entry.getInt(1))
    }
  }

  def first: Option[Long] = {
    val times = scan()
    val found = try if (times.hasNext) Some(times.next().key.getLong(0)) else None finally times.close()
    from = found.getOrElse(Long.MaxValue)
    found
  }
}

object TimeStore {
  /** A number for a timer from its name, so that timers may be added and moved. */
  def id(name: String): Int = name.hashCode
}
