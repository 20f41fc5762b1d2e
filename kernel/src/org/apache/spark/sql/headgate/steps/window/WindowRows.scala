package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The rows of a window step: what comes as keys and buffers, and what leaves. */
final class WindowRows(plan: WindowPlan, buffers: Buffers) {
  import plan.spec

  val Early: UTF8String = UTF8String.fromString("early")
  val OnTime: UTF8String = UTF8String.fromString("on_time")
  val Late: UTF8String = UTF8String.fromString("late")

  private val groups = plan.input.length - buffers.size
  private val endAt = indexOf(plan.end)
  private val lateAt = indexOf(plan.lateBytes)
  private val countAt = groups + plan.functions.take(plan.count).map(_.aggregateFunction.aggBufferSchema.length).sum

  private def indexOf(column: Attribute): Int = {
    val at = plan.input.indexWhere(_.exprId == column.exprId)
    require(at >= 0, s"no column $column in ${plan.input.mkString(", ")}")
    at
  }

  private def micros(shift: Long): Expression =
    Add(PreciseTimestampConversion(plan.end, TimestampType, LongType), Literal(shift))
  private def asTime(micros: Expression): Expression =
    PreciseTimestampConversion(micros, LongType, TimestampType)

  private val keyOf = GeneratedCode.projection(plan.keys :+ micros(0L), plan.input)
  private val valueOf = GeneratedCode.projection(
    plan.input.drop(groups) ++ Seq(plan.input(countAt), Literal(0), Literal(0)) ++
      (if (spec.session) Seq(micros(-spec.size)) else Nil), plan.input)

  /** Of a group of new rows: its key with the window's end, its row of state, how many they are. */
  def key(group: InternalRow): UnsafeRow = keyOf(group)
  def value(group: InternalRow): UnsafeRow = valueOf(group)
  def count(group: InternalRow): Long = group.getLong(countAt)
  /** Whether these are equal rows that no open window takes. */
  def isLate(group: InternalRow): Boolean = group.isNullAt(endAt)
  /** Whether these are equal rows of which only an open session could make something. */
  def mayBeLate(group: InternalRow): Boolean = !group.isNullAt(lateAt)
  def end(group: InternalRow): Long = group.getLong(endAt)
  private val keysOf = GeneratedCode.projection(plan.keys, plan.input)
  /** The key without the window's end. */
  def keyAlone(group: InternalRow): UnsafeRow = keysOf(group)

  // keys and end as in the state, the functions' results, then what is known of the pane
  private val firedBy = AttributeReference("fired_by", StringType)()
  private val pane = AttributeReference("pane", IntegerType)()
  private val start = AttributeReference("window_start", TimestampType)()
  private val known = (plan.keys ++ Seq(plan.end) ++ plan.functions.map(_.resultAttribute) ++
    Seq(firedBy, pane, start)).map(_.withNullability(true))
  private val project = GeneratedCode.projection(
    plan.keys ++ Seq(start, plan.end) ++ plan.results ++
      Seq(EqualTo(firedBy, Literal(Early, StringType)), firedBy, pane,
        if (spec.processing) Literal(null, TimestampType) else asTime(micros(-1000L))) ++
      plan.lateRow.map(Literal(null, _)), known)
  private val paneRow = new GenericInternalRow(3)
  private val withResults = new JoinedRow
  private val withPane = new JoinedRow

  def result(key: UnsafeRow, window: UnsafeRow, by: UTF8String): InternalRow = {
    paneRow.update(0, by); paneRow.setInt(1, buffers.pane(window))
    paneRow.setLong(2, if (spec.session) buffers.start(window) else key.getLong(plan.keys.length) - spec.size)
    project(withPane(withResults(key, buffers.evaluate(window)), paneRow))
  }

  private val conditions = plan.conditions.map(GeneratedCode.predicate(_, known)).toArray

  /** The flags of the conditions that ask for an early row now; -1 if one does that has no flag. */
  def conditionsMet(key: UnsafeRow, window: UnsafeRow): Int =
    if (conditions.isEmpty) 0
    else {
      val row = withPane(withResults(key, buffers.evaluate(window)), paneRow)
      var (flags, again) = (0, false)
      var i = 0
      while (i < conditions.length) {
        val flag = WindowStores.OnTime << (i + 1)
        if (spec.once(i)) {
          if (!buffers.has(window, flag) && conditions(i).eval(row)) flags |= flag
        } else if (conditions(i).eval(row)) again = true
        i += 1
      }
      if (flags == 0 && again) -1 else flags
    }

  private val late = plan.lateRow.map { schema =>
    val row = BoundReference(plan.keys.length, schema, nullable = false)
    GeneratedCode.projection(plan.keys.indices.map(i => BoundReference(i, plan.keys(i).dataType, nullable = true)) ++
      plan.output.slice(plan.keys.length, plan.output.length - 1).map(a => Literal(null, a.dataType)) :+ row)
  }.orNull
  private val unpacked = plan.lateRow.map(s => new UnsafeRow(s.length)).orNull
  private val lateStruct = new GenericInternalRow(1)
  private val lateJoined = new JoinedRow
  private var lastLate: InternalRow = null

  /** Makes the row of a late group ready for [[sameLateRow]], which gives it as often as it came. */
  def lateRow(group: InternalRow): Unit = {
    val bytes = group.getBinary(lateAt)
    unpacked.pointTo(bytes, bytes.length)
    lateStruct.update(0, unpacked)
    lastLate = late(lateJoined(keysOf(group), lateStruct))
  }

  def sameLateRow: InternalRow = lastLate
}
