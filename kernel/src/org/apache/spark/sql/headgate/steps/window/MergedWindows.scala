package org.apache.spark.sql.headgate.steps.window

import scala.collection.mutable

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.{GeneratedCode, StateStore}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.types._

/**
 * Writes the stores of a window step when keys become one: windows with the same end are merged, and
 * sessions of a key that touch each other then.
 */
final class MergedWindows(specs: Seq[StoreSpec], stores: Array[StateStore], buffers: Buffers, session: Boolean) {
  private def named(name: String): Int = specs.indexWhere(_.name == name)
  private val (windows, changed, sessions) =
    (named(WindowStores.Windows), named(WindowStores.Changed), named(WindowStores.Sessions))
  private val keys = specs.head.keySchema.length - 1
  private val keyOf = GeneratedCode.projection((0 until keys).map(i =>
    BoundReference(i, specs.head.keySchema(i).dataType, nullable = true)))
  private val fullKey = GeneratedCode.projection(specs.head.keySchema)
  private val startRow = GeneratedCode.projection(Array[DataType](LongType))
  private val joined = new JoinedRow
  private val number = new GenericInternalRow(1)
  private val touched = mutable.HashSet.empty[UnsafeRow]

  /** @param moved whether the key had another form before */
  def put(at: Int, key: UnsafeRow, value: UnsafeRow, moved: Boolean): Unit = {
    val store = stores(at)
    val there = store.get(key)
    store.put(key,
      if (there == null || at == changed) value
      else if (at == windows) buffers.merge(there.copy(), value)
      else if (there.getLong(0) <= value.getLong(0)) there.copy() else value)
    if (moved && session && at == sessions) touched += keyOf(key).copy()
  }

  def end(): Unit = touched.foreach(joinSessions)

  private final class Part(val start: Long, val end: Long)

  private def joinSessions(key: UnsafeRow): Unit = {
    val scan = stores(sessions).prefixScan(key)
    val parts = try scan.map(p => new Part(p.value.getLong(0), p.key.getLong(keys))).toList finally scan.close()
    val groups = parts.sortBy(_.start).foldLeft(List.empty[List[Part]]) {
      case (group :: rest, part) if part.start <= group.map(_.end).max => (part :: group) :: rest
      case (all, part) => List(part) :: all
    }
    groups.filter(_.length > 1).foreach(joinParts(key, _))
  }

  private def joinParts(key: UnsafeRow, parts: List[Part]): Unit = {
    val last = parts.maxBy(_.end)
    val all = parts.map(p => stores(windows).get(at(key, p.end)).copy())
    val onTime = buffers.has(stores(windows).get(at(key, last.end)), WindowStores.OnTime)
    val window = all.reduceLeft((a, b) => buffers.merge(a, b).copy())
    buffers.place(window, parts.map(_.start).min, onTime)
    val noted = if (changed < 0) None
      else parts.flatMap(p => Option(stores(changed).get(at(key, p.end))).map(_.copy())).headOption
    parts.foreach { p =>
      Seq(windows, sessions, changed).filter(_ >= 0).foreach(s => stores(s).remove(at(key, p.end)))
    }
    stores(windows).put(at(key, last.end), window)
    number.setLong(0, parts.map(_.start).min)
    stores(sessions).put(at(key, last.end), startRow(number).copy())
    noted.foreach(stores(changed).put(at(key, last.end), _))
  }

  private def at(key: UnsafeRow, end: Long): UnsafeRow = {
    val time = new GenericInternalRow(1)
    time.setLong(0, end)
    fullKey(joined(key, time)).copy()
  }
}
