/** Owns the expressions that put a row into its windows, in the light of the watermark. */
package org.apache.spark.sql.headgate.steps.window

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.headgate.aggregates.BatchValues
import org.apache.spark.sql.headgate.spark.{DiffersByBatch, GeneratedCode}
import org.apache.spark.sql.headgate.time.Saturating
import org.apache.spark.sql.types._

/** What a batch tells the expressions of a window step; the watermark is that of the batch before. */
final class LateBefore(step: String) extends BatchValues(step) {
  @volatile var micros: Long = Long.MinValue
  override def toString: String = "watermark"
}

/** The end of the window that a time falls into; null if that window is closed for good. */
case class OpenWindowEnd(child: Expression, late: LateBefore, size: Long, offset: Long,
    lateness: Long) extends UnaryExpression with DiffersByBatch {
  override def dataType: DataType = TimestampType
  override def nullable: Boolean = true
  override def foldable: Boolean = false

  override def eval(row: InternalRow): Any = {
    val time = child.eval(row)
    if (time == null) null
    else {
      val end = WindowTime.end(time.asInstanceOf[Long], size, offset)
      if (Saturating.plus(end, lateness) <= late.micros) null else end
    }
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val time = child.genCode(ctx)
    val holder = ctx.addReferenceObj("late", late, classOf[LateBefore].getName)
    val windows = classOf[WindowTime].getName
    val sums = WindowTime.Sums
    ev.copy(code = code"""
      ${time.code}
      boolean ${ev.isNull} = ${time.isNull};
      long ${ev.value} = 0L;
      if (!${ev.isNull}) {
        ${ev.value} = $windows.end(${time.value}, ${size}L, ${offset}L);
        ${ev.isNull} = $sums.plus(${ev.value}, ${lateness}L) <= $holder.micros();
      }""")
  }

  override protected def withNewChildInternal(c: Expression): OpenWindowEnd = copy(child = c)
}

/** Whether a window that ends then is closed for good, or there is none. */
case class IsClosed(child: Expression, late: LateBefore, lateness: Long) extends UnaryExpression with DiffersByBatch {
  override def dataType: DataType = BooleanType
  override def nullable: Boolean = false
  override def foldable: Boolean = false

  override def eval(row: InternalRow): Any = {
    val end = child.eval(row)
    end == null || Saturating.plus(end.asInstanceOf[Long], lateness) <= late.micros
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val end = child.genCode(ctx)
    val holder = ctx.addReferenceObj("late", late, classOf[LateBefore].getName)
    ev.copy(isNull = FalseLiteral, code = code"""
      ${end.code}
      boolean ${ev.value} = ${end.isNull} ||
        ${WindowTime.Sums}.plus(${end.value}, ${lateness}L) <= $holder.micros();""")
  }

  override protected def withNewChildInternal(c: Expression): IsClosed = copy(child = c)
}

/** The ends of all open windows that a time falls into; one null if there is none. */
case class OpenWindowEnds(child: Expression, late: LateBefore, size: Long, slide: Long,
    offset: Long, lateness: Long) extends UnaryExpression with CodegenFallback with DiffersByBatch {
  override def dataType: DataType = ArrayType(TimestampType, containsNull = true)
  override def nullable: Boolean = false
  override def foldable: Boolean = false

  override def eval(row: InternalRow): Any = {
    val time = child.eval(row)
    if (time == null) OpenWindowEnds.None
    else {
      val at = time.asInstanceOf[Long]
      var start = WindowTime.start(at, slide, offset) // of the newest that has begun
      val beyond = start > Long.MaxValue - size // windows that would end after time itself end with it
      while (start > Long.MaxValue - size) start -= slide
      val last = start + size
      var first = last
      while (first - slide > at && Saturating.plus(first - slide, lateness) > late.micros) first -= slide
      val ends =
        if (last <= at || Saturating.plus(last, lateness) <= late.micros) Array.empty[Any]
        else Array.tabulate[Any](((last - first) / slide + 1).toInt)(first + _ * slide)
      if (beyond) new GenericArrayData(ends :+ Long.MaxValue)
      else if (ends.isEmpty) OpenWindowEnds.None
      else new GenericArrayData(ends)
    }
  }

  override protected def withNewChildInternal(c: Expression): OpenWindowEnds = copy(child = c)
}

object OpenWindowEnds {
  private val None = new GenericArrayData(Array[Any](null))
}

/** The end of the session that a row makes alone: its time and the gap. */
case class SessionEnd(child: Expression, gap: Long) extends UnaryExpression {
  override def dataType: DataType = TimestampType
  override def foldable: Boolean = false
  override protected def nullSafeEval(time: Any): Any = Saturating.plus(time.asInstanceOf[Long], gap)
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    defineCodeGen(ctx, ev, time => s"${WindowTime.Sums}.plus($time, ${gap}L)")
  override protected def withNewChildInternal(c: Expression): SessionEnd = copy(child = c)
}

/** A row as bytes, which can be a key of an aggregation whatever its columns are. */
case class PackedRow(child: Expression) extends UnaryExpression {
  override def dataType: DataType = BinaryType
  override def nullable: Boolean = child.nullable
  override def foldable: Boolean = false
  @transient private lazy val packer = new RowPacker(child.dataType.asInstanceOf[StructType])

  override def eval(row: InternalRow): Any = {
    val value = child.eval(row)
    if (value == null) null else packer.pack(value.asInstanceOf[InternalRow])
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val made = new RowPacker(child.dataType.asInstanceOf[StructType])
    val ref = ctx.addReferenceObj("packer", made, classOf[RowPacker].getName)
    defineCodeGen(ctx, ev, row => s"$ref.pack($row)")
  }

  override protected def withNewChildInternal(c: Expression): PackedRow = copy(child = c)
}

/** A part of generated code, and so as old as that is. */
final class RowPacker(schema: StructType) extends Serializable {
  @transient private lazy val project = GeneratedCode.unshared(schema)
  def pack(row: InternalRow): Array[Byte] = project(row).getBytes
}

final class WindowTime private ()

object WindowTime {
  /** What generated code calls for sums of times. */
  val Sums: String = Saturating.getClass.getName.stripSuffix("$")

  /** The start of the window of a size, counted from an offset, that a time falls into. */
  def start(time: Long, size: Long, offset: Long): Long =
    Saturating.minus(time,
      if (offset == 0L) Math.floorMod(time, size) else Math.floorMod(Math.floorMod(time, size) - offset, size))

  /** Its end; the last windows end with time itself. */
  def end(time: Long, size: Long, offset: Long): Long = Saturating.plus(start(time, size, offset), size)
}
