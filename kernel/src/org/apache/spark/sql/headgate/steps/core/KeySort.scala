package org.apache.spark.sql.headgate.steps.core

import org.apache.spark.SparkEnv
import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution.UnsafeExternalRowSorter
import org.apache.spark.sql.execution.UnsafeExternalRowSorter.PrefixComputer
import org.apache.spark.sql.headgate.spark.{GeneratedCode, Session}
import org.apache.spark.unsafe.types.ByteArray
import org.apache.spark.util.collection.unsafe.sort.{PrefixComparators, RecordComparator}

/**
 * The rows of a task with those of a key together and, within a key, in the order of other columns.
 *
 * Spark sorts by more than one column by comparing rows with each other. Here they are sorted by a hash
 * of their key, which is a number and goes digit by digit. The few rows that share a hash are put in
 * order only if they are not: when a shuffle gives its blocks in another order than they were written,
 * or when two keys have the same hash. Keys come in the order of their hashes, which is the same
 * whenever a batch is replayed.
 */
final class KeySort(columns: Seq[Attribute], keys: Seq[Attribute], within: Seq[Attribute],
    rows: Iterator[InternalRow], limits: SortLimits) extends Iterator[UnsafeRow] {
  import KeySort._

  private val schema = DataTypeUtils.fromAttributes(columns)
  private val keyOf = GeneratedCode.projection(keys, columns)
  private val order = GeneratedCode.ordering(within, columns)
  private val byHash = sortedByHash()
  private var ahead: UnsafeRow = null // the next row by hash, not yet in a group
  private val group = new RowGroup(schema.length)
  private var large: Iterator[InternalRow] = Iterator.empty
  private var last: UnsafeRow = null
  private var isNew = false
  private lazy val byKey = new ByKey
  advance()

  /** Whether the row that was given last is the first one of its key. */
  def isFirst: Boolean = isNew

  /** The key of the row that was given last; nobody changes it. */
  def key: UnsafeRow = last

  override def hasNext: Boolean = group.hasNext || ahead != null || large.hasNext

  override def next(): UnsafeRow = {
    if (!group.hasNext && !large.hasNext) collect()
    if (group.hasNext) {
      val row = group.next()
      if (group.ofManyKeys) see(row) else isNew = group.taken == 1
      row
    } else {
      val row = large.next().asInstanceOf[UnsafeRow]
      see(row)
      row
    }
  }

  private def see(row: UnsafeRow): Unit = {
    val key = keyOf(row)
    isNew = last == null || last != key
    if (isNew) last = key.copy()
  }

  private def hashed(key: UnsafeRow): Long =
    XXH64.hashUnsafeWords(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes, 42L) >>> limits.lostBits

  private def advance(): Unit = ahead = if (byHash.hasNext) byHash.next().asInstanceOf[UnsafeRow] else null

  /** Takes all rows that have the hash of the next one. */
  private def collect(): Unit = {
    group.clear()
    val first = keyOf(ahead).copy()
    val hash = hashed(first)
    var key = first
    var other = false
    do {
      other ||= !(key eq first) && key != first
      group.add(ahead, order)
      advance()
      if (ahead != null) key = keyOf(ahead)
    } while (ahead != null && group.bytes <= limits.groupBytes && (key == first || hashed(key) == hash))
    if (group.bytes > limits.groupBytes) takeLarge(hash)
    else {
      group.arrange(other, byKey)
      if (!other) last = first
    }
  }

  private def takeLarge(hash: Long): Unit = {
    val sorter = UnsafeExternalRowSorter.create(schema, byKey, PrefixComparators.LONG,
      new Prefixes(_ => 0L), pageBytes, false)
    while (group.hasNext) sorter.insertRow(group.next())
    while (ahead != null && hashed(keyOf(ahead)) == hash) {
      sorter.insertRow(ahead)
      advance()
    }
    large = sorter.sort()
  }

  private def sortedByHash(): Iterator[InternalRow] = {
    val sorter = UnsafeExternalRowSorter.createWithRecordComparator(schema, () => Alike, PrefixComparators.LONG,
      new Prefixes(row => hashed(keyOf(row))), pageBytes, true)
    rows.foreach(row => sorter.insertRow(row.asInstanceOf[UnsafeRow]))
    sorter.sort()
  }

  /** By key, whatever the order of keys, and then by the other columns. */
  private final class ByKey extends Ordering[InternalRow] {
    private val one = GeneratedCode.projection(keys, columns)
    private val other = GeneratedCode.projection(keys, columns)
    override def compare(a: InternalRow, b: InternalRow): Int = {
      val byKey = ByteArray.compareBinary(one(a).getBytes, other(b).getBytes)
      if (byKey != 0) byKey else order.compare(a, b)
    }
  }
}

object KeySort {
  private def pageBytes: Long = SparkEnv.get.memoryManager.pageSizeBytes

  private[core] final class Prefixes(of: InternalRow => Long) extends PrefixComputer {
    private val prefix = new PrefixComputer.Prefix
    override def computePrefix(row: InternalRow): PrefixComputer.Prefix = { prefix.value = of(row); prefix }
  }

  /** Says nothing about rows whose hashes are the same. */
  private[core] object Alike extends RecordComparator {
    override def compare(one: Object, oneAt: Long, oneSize: Int, other: Object, otherAt: Long, otherSize: Int): Int = 0
  }
}

/**
 * @param groupBytes rows of one hash that take more are sorted where they can be spilled
 * @param lostBits   bits of hashes that are not used: with all but a few, tests see keys that share one
 */
case class SortLimits(groupBytes: Long, lostBits: Int)

object SortLimits {
  private val GroupKey = "spark.headgate.sort.group.bytes"
  private val LostKey = "spark.headgate.test.sort.lost.bits"

  def of(session: Session): SortLimits = SortLimits(
    session.conf.getOption(GroupKey).fold(8L << 20)(JavaUtils.byteStringAsBytes),
    session.conf.getOption(LostKey).fold(0)(_.toInt))
}
