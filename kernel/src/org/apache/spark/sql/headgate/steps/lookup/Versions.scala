package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores, StateStore, StoredPairs, StoreShape}
import org.apache.spark.sql.headgate.steps.core.{LeastTimes, TimeStore}
import org.apache.spark.sql.headgate.store.{CachedStore, StoreSpec}
import org.apache.spark.sql.headgate.time.Saturating
import org.apache.spark.sql.types._

/**
 * The versions of a table's rows. A version is valid from its time on until that of the next; a row that is null
 * says that there was none. All times are in microseconds.
 */
final class Versions(opened: OpenStores, specs: Seq[StoreSpec], keep: Long, cacheBytes: Long) {
  import AsOfStores.Before

  private val newest = new CachedStore(opened, cacheBytes)
  private val older: StateStore = opened.stores(1)
  private val spec = specs(1)
  private val types = spec.keySchema.map(_.dataType)
  private val keyTypes = types.drop(Before)
  private val due = new TimeStore(opened.stores(2), keyTypes, LeastTimes.of(opened, 2))
  private val keyOf = GeneratedCode.projection(keyTypes.indices.map(i =>
    BoundReference(Before + i, keyTypes(i), nullable = true)))
  private val full = GeneratedCode.projection((0 until Before).map(i =>
    BoundReference(keyTypes.length + i, LongType, nullable = false)) ++
    keyTypes.indices.map(i => BoundReference(i, keyTypes(i), nullable = true)))
  private val bound = GeneratedCode.projection(spec.keySchema)
  private val leastKey = StoreShape.leastRow(spec.keySchema)
  private val row = BoundReference(0, spec.valueSchema.head.dataType, nullable = true)
  private val rowAlone = GeneratedCode.projection(row :: Nil)
  private val rowAndTime = GeneratedCode.projection(Seq(row, BoundReference(1, TimestampType, nullable = false)))
  private val order = new GenericInternalRow(Before)
  private val one = new GenericInternalRow(1)
  private val joined = new JoinedRow

  def hits: Long = newest.hits
  def bytes: Long = newest.bytes

  private def hashed(key: UnsafeRow): Long =
    XXH64.hashUnsafeWords(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, 42L)

  private def olderKey(key: UnsafeRow, time: Long): UnsafeRow = {
    order.setLong(0, hashed(key)); order.setLong(1, time)
    full(joined(key, order))
  }

  /** The time of a key's newest version; none if it has none. */
  def newestTime(key: UnsafeRow): Option[Long] = Option(newest.get(key)).map(_.getLong(1))

  /** The version that was valid at a time as a row of one struct, or null; good until the next call. */
  def find(key: UnsafeRow, time: Long): UnsafeRow = {
    val last = newest.get(key)
    if (last == null) null
    else {
      val version = if (last.getLong(1) <= time) rowAlone(last) else findOlder(key, time)
      if (version == null || version.isNullAt(0)) null else version
    }
  }

  /** Stores are read forward only: so first near the time, and further back while nothing is there. */
  private def findOlder(key: UnsafeRow, time: Long): UnsafeRow = {
    var width = math.max(keep / 256, 1L)
    var to = time
    var found: UnsafeRow = null
    var more = true
    while (found == null && more) {
      val from = if (width > keep) Long.MinValue else Saturating.minus(to, width)
      scan(key, from, to)((_, value) => found = rowAlone(value).copy())
      more = from != Long.MinValue
      to = Saturating.minus(from, 1L)
      width = Saturating.times(width, 16L)
    }
    found
  }

  /** Older versions of a key whose times are in a range, both ends included, the first ones first. */
  private def scan(key: UnsafeRow, from: Long, to: Long)(see: (UnsafeRow, UnsafeRow) => Unit): Unit = {
    val hash = hashed(key)
    val pairs: StoredPairs = older.rangeScan(Some(at(hash, from)),
      Some(if (to == Long.MaxValue) at(hash + 1, Long.MinValue) else at(hash, to + 1)))
    try while (pairs.hasNext) {
      val pair = pairs.next()
      if (keyOf(pair.key) == key) see(pair.key, pair.value)
    } finally pairs.close()
  }

  private def at(hash: Long, time: Long): UnsafeRow = {
    val row = new GenericInternalRow(types.length)
    (Before until types.length).foreach(i => row.update(i, leastKey.get(i, types(i))))
    row.setLong(0, hash); row.setLong(1, time)
    bound(row).copy()
  }

  /**
   * Puts a version at its place.
   *
   * @param value   a row of one struct; null for a deletion
   * @param horizon versions that were over by then are not needed any more
   * @return how many versions there are more
   */
  def put(key: UnsafeRow, value: UnsafeRow, time: Long, horizon: Long): Int = {
    val last = newest.get(key)
    if (last == null || last.getLong(1) <= time) {
      val before = if (last == null) Long.MinValue else last.getLong(1)
      if (last != null && before < time) older.put(olderKey(key, before), rowAlone(last))
      one.setLong(0, time)
      newest.put(key, rowAndTime(joined(value, one)))
      if (last != null || value.isNullAt(0)) due.put(key, time, 0)
      if (last != null && before == time) 0 else 1
    } else if (last.getLong(1) <= horizon) 0 // nobody can ask for it
    else {
      var next = last.getLong(1)
      var there = false
      var seen = false
      scan(key, time, Saturating.minus(next, 1L)) { (k, _) =>
        val found = k.getLong(1)
        if (found == time) there = true else if (!seen) { next = found; seen = true }
      }
      older.put(olderKey(key, time), value)
      due.put(key, time, 0)
      due.put(key, next, 0)
      if (there) 0 else 1
    }
  }

  /**
   * Forgets what was over by a time: the versions before the one that was valid then, and a key that was deleted. A
   * deletion with newer versions stays: an older version that comes late would else be taken for valid after it.
   */
  def forget(horizon: Long)(removed: () => Unit): Unit = if (horizon != Long.MinValue) {
    due.due(horizon) { (key, time, _) =>
      val mine = key.copy()
      // the scan is of a snapshot: what is removed is still passed by
      scan(mine, Long.MinValue, Saturating.minus(time, 1L)) { (k, _) => older.remove(k); removed() }
      val last = newest.get(mine)
      if (last != null && last.getLong(1) == time && last.isNullAt(0)) { newest.remove(mine); removed() }
      false // the entry goes
    }
  }

  def beforeCommit(): Unit = due.first

  /** To be called once the stores are committed. */
  def committed(): Unit = {
    newest.committed()
    LeastTimes.keepOnSuccess(opened, 2, due.least)
  }
}
