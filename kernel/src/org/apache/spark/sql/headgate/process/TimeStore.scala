package org.apache.spark.sql.headgate.process

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.streaming.state.StateStore
import org.apache.spark.sql.types._

/** The times at which keys are to be looked at by one clock, in order. */
final class TimeStore(store: StateStore, keyTypes: Seq[DataType]) {
  private val timed = UnsafeProjection.create(Seq(
    BoundReference(keyTypes.length, LongType, nullable = false),
    BoundReference(keyTypes.length + 1, IntegerType, nullable = false)) ++
    keyTypes.zipWithIndex.map { case (t, i) => BoundReference(i, t, nullable = true) })
  private val keyOf = UnsafeProjection.create(keyTypes.zipWithIndex.map { case (t, i) =>
    BoundReference(i + 2, t, nullable = true)
  })
  private val none = UnsafeProjection.create(Array[DataType](BooleanType)).apply(InternalRow(null)).copy()
  private val pair = new GenericInternalRow(2)
  private val joined = new JoinedRow

  private def at(key: UnsafeRow, time: Long, timer: Int): UnsafeRow = {
    pair.setLong(0, time)
    pair.setInt(1, timer)
    timed(joined(key, pair))
  }

  def put(key: UnsafeRow, time: Long, timer: Int): Unit = store.put(at(key, time, timer), none)
  def remove(key: UnsafeRow, time: Long, timer: Int): Unit = store.remove(at(key, time, timer))

  /**
   * What is due, earliest first: a key, its time and the timer's number. What `take` does not know is
   * removed.
   */
  def due(limit: Long)(take: (UnsafeRow, Long, Int) => Boolean): Unit = {
    val unknown = mutable.ArrayBuffer.empty[UnsafeRow]
    val scan = store.iterator()
    try {
      var more = true
      while (more && scan.hasNext) {
        val entry = scan.next().key
        if (entry.getLong(0) > limit) more = false
        else if (!take(keyOf(entry), entry.getLong(0), entry.getInt(1))) unknown += entry.copy()
      }
    } finally scan.close()
    unknown.foreach(store.remove(_))
  }

  def first: Option[Long] = {
    val scan = store.iterator()
    try if (scan.hasNext) Some(scan.next().key.getLong(0)) else None finally scan.close()
  }
}

object TimeStore {
  /** A number for a timer from its name, so that timers may be added and moved. */
  def id(name: String): Int = name.hashCode
}
