package org.apache.spark.sql.headgate.steps.window

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.headgate.counters.StepCounter
import org.apache.spark.sql.headgate.spark.{GeneratedCode, KeyLayout, OpenStores, StoreShape}
import org.apache.spark.sql.headgate.steps.core.{AggregationParts, StepTask}
import org.apache.spark.sql.headgate.store.StoreSpec
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** How count windows keep their state: how many rows a key had, and its windows that are not full. */
object CountStores {
  val Windows: String = StoreShape.DefaultName
  val Numbers = "numbers"

  def layout(aggregation: AggregationParts, keys: Int): Seq[StoreSpec] = {
    val parts = aggregation.grouping.take(keys).zipWithIndex.map { case (k, i) => StructField(s"key$i", k.dataType) }
    val key = StructType(parts)
    val full = StructType(parts :+ StructField("last_row", LongType, nullable = false))
    val row = WindowStores.row(aggregation.named)
    Seq(StoreSpec(Windows, full, row, KeyLayout.Plain, parts.indices),
      StoreSpec(Numbers, key, StructType(StructField("rows", LongType) :: Nil),
        KeyLayout.Plain, parts.indices))
  }
}

/** All that a task of a count window needs from the driver. */
case class CountPlan(size: Long, every: Long, keys: Seq[Attribute], input: Seq[Attribute],
    functions: Seq[AggregateExpression], results: Seq[NamedExpression], ended: Boolean,
    in: StepCounter, out: StepCounter, inserted: StepCounter, removed: StepCounter, batchId: Long,
    failEvery: Int)

/**
 * One partition of one batch. Rows come by key and position. A window is known by the number of its
 * last row, a multiple of `every`, and goes out when that row has come; when event time ends, the
 * window that would be next goes out with what it has.
 */
final class CountTask(plan: CountPlan, opened: OpenStores, input: Iterator[InternalRow],
    finished: CountTask => Unit) extends StepTask {
  private val windows = opened.stores(0)
  private val numbers = opened.stores(1)
  private val buffers = new Buffers(plan.functions, session = false)
  private val single = new RowBuffers(plan.functions, plan.input)
  private val keysOf = GeneratedCode.projection(plan.keys, plan.input)
  private val keyTypes = plan.keys.map(_.dataType)
  private val fullKey = GeneratedCode.projection(keyTypes.zipWithIndex.map { case (t, i) =>
    BoundReference(i, t, nullable = true)
  } :+ BoundReference(keyTypes.length, LongType, nullable = false))
  private val number = new GenericInternalRow(1)
  private val numberRow = GeneratedCode.projection(Array[DataType](LongType))
  private val joined = new JoinedRow

  private val known = (plan.keys ++ plan.functions.map(_.resultAttribute)).map(_.withNullability(true))
  private val project = {
    val Seq(first, last) = plan.results.takeRight(2)
    GeneratedCode.projection(plan.keys ++ Seq(first, last) ++ plan.results.dropRight(2) ++ Seq(
      Literal(false), Literal(UTF8String.fromString("on_time"), StringType), Literal(0), last), known)
  }

  private val groups = input.buffered
  private val ready = mutable.Queue.empty[InternalRow]

  private def at(key: UnsafeRow, last: Long): UnsafeRow = {
    number.setLong(0, last)
    fullKey(joined(key, number))
  }

  private def tell(key: UnsafeRow, window: UnsafeRow): Unit =
    ready += project(joined(key, buffers.evaluate(window))).copy()

  private def takeKey(): Unit = {
    val key = keysOf(groups.head).copy()
    val old = numbers.get(key)
    val before = if (old == null) 0L else old.getLong(0)
    var count = before
    val open = mutable.LinkedHashMap.empty[Long, UnsafeRow]
    while (groups.hasNext && keysOf(groups.head) == key) {
      val one = single.of(groups.next())
      plan.in.inc()
      count += 1
      var last = (count + plan.every - 1) / plan.every * plan.every
      while (last - plan.size < count) {
        // kept from batches before if its first row is one of theirs
        val window = open.getOrElseUpdate(last, if (firstOf(last) <= before) windows.get(at(key, last)).copy() else null)
        open(last) = if (window == null) one.copy() else buffers.merge(window, one).copy()
        last += plan.every
      }
      if (count % plan.every == 0) {
        tell(key, open.remove(count).get)
        if (firstOf(count) <= before) { windows.remove(at(key, count)); rowsRemoved += 1; plan.removed.inc() }
      }
    }
    open.foreach { case (last, window) =>
      if (firstOf(last) > before) plan.inserted.inc()
      windows.put(at(key, last), window)
      rowsStored += 1
    }
    number.setLong(0, count)
    numbers.put(key, numberRow(number))
  }

  /** The number of a window's first row. */
  private def firstOf(last: Long): Long = math.max(1L, last - plan.size + 1)

  private def tellAll(): Unit = {
    val scan = numbers.iterator()
    try scan.foreach { pair =>
      val key = pair.key.copy()
      val count = pair.value.getLong(0)
      numbers.remove(key)
      var last = (count + plan.every - 1) / plan.every * plan.every
      val next = if (count % plan.every != 0) last else -1L
      if (next < 0) last += plan.every
      while (last - plan.size < count) {
        val full = at(key, last).copy()
        if (last == next) tell(key, windows.get(full))
        windows.remove(full)
        rowsRemoved += 1; plan.removed.inc()
        last += plan.every
      }
    } finally scan.close()
  }

  private var toldAll = false

  override protected def work(): Unit =
    if (ready.nonEmpty) { current = ready.dequeue(); rowsOut += 1; plan.out.inc() }
    else if (groups.hasNext) takeKey()
    else if (plan.ended && !toldAll) { toldAll = true; tellAll() }
    else {
      ended = true
      finished(this)
      TaskFailures.maybeFail(plan.failEvery, plan.batchId)
    }
}
