package org.apache.spark.sql.headgate.steps.process

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, ArrayData, GenericArrayData, MapData}
import org.apache.spark.sql.headgate.spark.{GeneratedCode, StateStore}
import org.apache.spark.sql.types._

/**
 * The entries of a list or map state, by key: one row each, so that what is added is written and
 * nothing else. Entries whose time is over are removed when their key is read.
 */
sealed abstract class EntryStore(state: EntryState, store: StateStore, keyTypes: Seq[DataType],
    val partType: DataType, nowMicros: Long) {
  val entrySchema: StructType =
    StructType(Seq(StructField("part", partType), StructField("value", state.value)))
  private val withPart = GeneratedCode.projection((keyTypes :+ partType).zipWithIndex.map {
    case (t, i) => BoundReference(i, t, nullable = true)
  })
  private val valueTypes: Array[DataType] =
    if (state.ttl > 0) Array(state.value, TimestampType) else Array(state.value)
  private val valueRow = GeneratedCode.projection(valueTypes)
  private val part = new GenericInternalRow(1)
  private val value = new GenericInternalRow(valueTypes.length)
  private val joined = new JoinedRow
  private val partAt = keyTypes.length

  protected def put(key: UnsafeRow, name: Any, held: Any): Unit = {
    part.update(0, name)
    value.update(0, held)
    if (state.ttl > 0) value.update(1, nowMicros + state.ttl)
    store.put(withPart(joined(key, part)), valueRow(value))
  }

  protected def remove(key: UnsafeRow, name: Any): Unit = {
    part.update(0, name)
    store.remove(withPart(joined(key, part)))
  }

  /** How many bytes the entries had that were scanned last. */
  @volatile var lastScan: Long = 0L

  /** The entries of a key: the part that names each, and its value. */
  protected def scan(key: UnsafeRow): Seq[(Any, Any)] = {
    val found = mutable.ArrayBuffer.empty[(Any, Any)]
    val over = mutable.ArrayBuffer.empty[UnsafeRow]
    var bytes = 0L
    val entries = store.prefixScan(key)
    try entries.foreach { pair =>
      val row = pair.value.copy()
      bytes += pair.key.getSizeInBytes + row.getSizeInBytes
      if (isOver(row)) over += pair.key.copy()
      else found += ((pair.key.copy().get(partAt, partType), if (row.isNullAt(0)) null else row.get(0, state.value)))
    } finally entries.close()
    over.foreach(store.remove(_))
    lastScan = bytes
    found.toSeq
  }

  // what was kept before the state had a time to live has no end
  private def isOver(row: UnsafeRow): Boolean =
    state.ttl > 0 && !row.isNullAt(1) && row.getLong(1) <= nowMicros

  protected def clear(key: UnsafeRow): Unit = {
    val keys = mutable.ArrayBuffer.empty[UnsafeRow]
    val entries = store.prefixScan(key)
    try entries.foreach(pair => keys += pair.key.copy()) finally entries.close()
    keys.foreach(store.remove(_))
  }

  // the task reads and writes small ones while its worker asks for entries of large ones
  /** What Python is sent of a key. */
  final def read(key: UnsafeRow): Any = synchronized(whole(key))
  /** Applies what Python gave back. */
  final def write(key: UnsafeRow, change: InternalRow): Unit = synchronized(apply(key, change))
  final def all(key: UnsafeRow): Seq[(Any, Any)] = synchronized(ordered(scan(key)))
  /** The entry of a name, or nothing. */
  final def one(key: UnsafeRow, name: Any): Seq[(Any, Any)] = synchronized {
    part.update(0, name)
    val at = withPart(joined(key, part)).copy()
    val found = store.get(at)
    if (found == null || isOver(found)) Nil
    else {
      val row = found.copy()
      Seq((at.get(partAt, partType), if (row.isNullAt(0)) null else row.get(0, state.value)))
    }
  }

  protected def ordered(entries: Seq[(Any, Any)]): Seq[(Any, Any)] = entries
  protected def whole(key: UnsafeRow): Any
  protected def apply(key: UnsafeRow, change: InternalRow): Unit
}

final class ListStore(state: EntryState, store: StateStore, keyTypes: Seq[DataType], nowMicros: Long)
  extends EntryStore(state, store, keyTypes, LongType, nowMicros) {

  // a scan is in the order of bytes, which is not that of numbers
  override protected def ordered(entries: Seq[(Any, Any)]): Seq[(Any, Any)] =
    entries.sortBy(_._1.asInstanceOf[Long])

  override protected def whole(key: UnsafeRow): ArrayData =
    new GenericArrayData(ordered(scan(key)).map(_._2).toArray[Any])

  override protected def apply(key: UnsafeRow, change: InternalRow): Unit = {
    if (change.getBoolean(0)) clear(key)
    val first = change.getLong(1)
    val added = change.getArray(2)
    var i = 0
    while (i < added.numElements()) {
      put(key, first + i, added.get(i, state.value))
      i += 1
    }
  }
}

final class MapStore(state: EntryState, store: StateStore, keyTypes: Seq[DataType], nowMicros: Long)
  extends EntryStore(state, store, keyTypes, state.key.get, nowMicros) {

  override protected def whole(key: UnsafeRow): MapData = {
    val entries = scan(key)
    new ArrayBasedMapData(new GenericArrayData(entries.map(_._1).toArray[Any]),
      new GenericArrayData(entries.map(_._2).toArray[Any]))
  }

  override protected def apply(key: UnsafeRow, change: InternalRow): Unit = {
    if (change.getBoolean(0)) clear(key)
    val removed = change.getArray(2)
    var i = 0
    while (i < removed.numElements()) {
      remove(key, removed.get(i, state.key.get))
      i += 1
    }
    val put = change.getMap(1)
    val (names, values) = (put.keyArray(), put.valueArray())
    i = 0
    while (i < put.numElements()) {
      this.put(key, names.get(i, state.key.get), if (values.isNullAt(i)) null else values.get(i, state.value))
      i += 1
    }
  }
}
