package org.apache.spark.sql.headgate.steps.join

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.{GeneratedCode, StateStore, StoredPair, StoredPairs, StoreShape}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/**
 * The rows that a join keeps of both sides. A store can have its keys in the order of columns of a fixed
 * size only, so a hash stands for the user's key there, and the key itself decides between those that share one.
 */
final class KeptRows(store: StateStore, spec: StoreSpec) {
  import JoinStores.Before

  private val types = spec.keySchema.map(_.dataType)
  private val keys = types.length - Before
  private val keyOf = GeneratedCode.projection((Before until types.length).map(i =>
    BoundReference(i, types(i), nullable = true)))
  private val full = GeneratedCode.projection((0 until Before).map(i =>
    BoundReference(keys + i, types(i), nullable = false)) ++ (0 until keys).map(i =>
    BoundReference(i, types(Before + i), nullable = true)))
  private val value = GeneratedCode.projection(spec.valueSchema)
  private val bound = GeneratedCode.projection(spec.keySchema)
  private val leastKey = StoreShape.leastRow(spec.keySchema)
  private val joined = new JoinedRow
  private val order = new GenericInternalRow(Before)
  private val values = new GenericInternalRow(3)
  private val sizes = Seq(0, 1).map(i => spec.valueSchema(i).dataType.asInstanceOf[StructType].length)

  private def hashed(key: UnsafeRow): Long =
    XXH64.hashUnsafeWords(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, 42L)

  private def valueOf(side: Int, row: UnsafeRow, matched: Boolean): UnsafeRow = {
    values.update(side, row)
    values.update(1 - side, null)
    values.setBoolean(2, matched)
    value(values)
  }

  def put(key: UnsafeRow, side: Int, time: Long, number: Long, row: UnsafeRow, matched: Boolean): Unit = {
    order.setLong(0, hashed(key)); order.setByte(1, side.toByte); order.setLong(2, time); order.setLong(3, number)
    store.put(full(joined(key, order)), valueOf(side, row, matched))
  }

  /** Notes that a row of a scan has a match. */
  def putMatched(found: StoredPair, side: Int): Unit =
    store.put(found.key, valueOf(side, row(found, side), matched = true))

  def remove(found: StoredPair): Unit = store.remove(found.key)

  def time(found: StoredPair): Long = found.key.getLong(2)
  def row(found: StoredPair, side: Int): UnsafeRow = found.value.getStruct(side, sizes(side))
  def isMatched(found: StoredPair): Boolean = found.value.getBoolean(2)

  /** The rows of a key and side whose times are in a range, both ends included; by time and as they came. */
  def scan(key: UnsafeRow, side: Int, from: Long, to: Long): Scan = new Scan(key,
    if (from > to) null else {
      val hash = hashed(key)
      store.rangeScan(Some(at(hash, side, from)),
        Some(if (to == Long.MaxValue) at(hash, side + 1, Long.MinValue) else at(hash, side, to + 1)))
    })

  /** A bound before all rows of that time: their numbers are not negative. */
  private def at(hash: Long, side: Int, time: Long): UnsafeRow = {
    val row = new GenericInternalRow(types.length)
    (Before until types.length).foreach(i => row.update(i, leastKey.get(i, types(i))))
    row.setLong(0, hash); row.setByte(1, side.toByte); row.setLong(2, time); row.setLong(3, Long.MinValue)
    bound(row).copy()
  }

  /** Rows of one key; it closes itself in the end. A row is good until the next one is asked for. */
  final class Scan(key: UnsafeRow, pairs: StoredPairs) extends Iterator[StoredPair] {
    private var ahead: StoredPair = null
    private var over = pairs == null

    override def hasNext: Boolean = {
      while (ahead == null && !over) {
        if (!pairs.hasNext) { pairs.close(); over = true }
        else {
          val found = pairs.next()
          if (keyOf(found.key) == key) ahead = found
        }
      }
      ahead != null
    }

    override def next(): StoredPair = {
      if (!hasNext) throw new NoSuchElementException
      val found = ahead
      ahead = null
      found
    }
  }
}
