package org.apache.spark.sql.headgate.steps.join

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.headgate.store.CachedStore
import org.apache.spark.sql.types._

/** Rows of a side that are in a value of their own, from `first` to `last`. */
private[join] final class Block(val side: Int, val number: Int, var first: Long, var last: Long, var rows: Int)

/**
 * What a join keeps of one key at a time: the rows in its head, and which blocks there are.
 *
 * @param blockBytes rows of a side in the head that take more go to a block, the older half of them
 */
private[join] final class KeptRows(store: CachedStore, keyTypes: Seq[DataType], blockBytes: Int) {
  import JoinStores.Head

  val rows: Array[TimedRows] = Array(new TimedRows, new TimedRows)
  val blocks: mutable.ArrayBuffer[Block] = mutable.ArrayBuffer.empty
  /** When the key is to be looked at, as its head says; [[KeptRows.Never]] if it need not be. */
  var due: Long = KeptRows.Never

  private val full = GeneratedCode.projection(keyTypes.zipWithIndex.map { case (t, i) =>
    BoundReference(i, t, nullable = true)
  } :+ BoundReference(keyTypes.length, IntegerType, nullable = false))
  private val joined = new JoinedRow
  private val number = new GenericInternalRow(1)
  private val value = new KeptValue
  private val ofBlock = new TimedRows
  private var key: UnsafeRow = null
  private var isKept = false
  private var changed = false

  private def place(block: Int): UnsafeRow = { number.setInt(0, block); full(joined(key, number)) }

  /** Reads what is kept of a key. */
  def open(key: UnsafeRow): Unit = {
    this.key = key
    changed = false
    val found = store.get(place(Head))
    isKept = found != null
    blocks.clear()
    due = if (isKept && !found.isNullAt(JoinStores.DueAt)) found.getLong(JoinStores.DueAt) else KeptRows.Never
    if (isKept) {
      read(found, JoinSpec.Left, rows(JoinSpec.Left))
      read(found, JoinSpec.Right, rows(JoinSpec.Right))
      KeptValue.readBlocks(found, blocks)
    } else rows.foreach(_.clear())
  }

  private def read(value: UnsafeRow, side: Int, to: TimedRows): Unit =
    if (value.isNullAt(side)) to.clear()
    else to.read(value.getBaseObject, value.getBaseOffset + (value.getLong(side) >>> 32))

  /** The rows of a block; good until the next one is read. */
  def load(block: Block): TimedRows = {
    val found = store.get(place(block.number))
    if (found == null) throw new IllegalStateException(s"block ${block.number} of a join's rows is not there")
    read(found, block.side, ofBlock)
    ofBlock
  }

  /** Writes a block's rows, which were loaded and are fewer now, or have matches. */
  def save(block: Block, of: TimedRows): Unit = {
    block.first = of.time(0)
    block.rows = of.size
    store.put(place(block.number), value.ofBlock(block.side, of, of.size))
    changed = true
  }

  def remove(block: Block): Unit = {
    store.remove(place(block.number))
    blocks -= block
    changed = true
  }

  /** Keeps new rows, beginning with one of them. */
  def add(side: Int, fresh: TimedRows, from: Int): Unit = if (from < fresh.size) {
    rows(side).addAll(fresh, from)
    changed = true
  }

  def drop(side: Int, count: Int): Unit = if (count > 0) {
    rows(side).drop(count)
    changed = true
  }

  def setDue(time: Long): Unit = if (due != time) { due = time; changed = true }

  /** Takes the older half of a side's rows out of a head that has grown large. */
  def relieve(): Unit = rows.indices.foreach { side =>
    val mine = rows(side)
    while (mine.size > 1 && mine.byteCount > math.max(blockBytes, KeptValue.BlockBytes * blocks.length)) {
      val count = mine.half
      val number = if (blocks.isEmpty) Head + 1 else blocks.last.number + 1
      blocks += new Block(side, number, mine.time(0), mine.time(count - 1), count)
      store.put(place(number), value.ofBlock(side, mine, count))
      mine.drop(count)
      changed = true
    }
  }

  def isEmpty: Boolean = rows.forall(_.size == 0) && blocks.isEmpty

  /** Writes the head, if it has changed. */
  def close(): Unit =
    if (isEmpty) { if (isKept) store.remove(place(Head)) }
    else if (changed || rows.exists(_.isNoted)) store.put(place(Head), value.ofHead(rows, blocks, due))

  def committed(): Unit = store.committed()
}

private[join] object KeptRows {
  val Never: Long = Long.MinValue
}
