/** Owns the windows as Python calls them. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Column, DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan, Project, Sort}
import org.apache.spark.sql.functions.{col, count, explode, lit, max, min, struct, when}

import org.apache.spark.sql.headgate.aggregates.{BatchNumber, BatchTime, BatchValues, FirstRows, Replayable}
import org.apache.spark.sql.headgate.spark.Frames
import org.apache.spark.sql.headgate.steps.core.{Aggregation, KnownFunctions, OneKey}
import org.apache.spark.sql.headgate.steps.window.{
  CountStores, CountWindow, IsClosed, KeyedWindow, LateBefore, OpenWindowEnd, OpenWindowEnds, PackedRow, SessionEnd, Windowing}
import org.apache.spark.sql.types._

object WindowApi {
  import Grouped.quoted

  private val Unmarked = "__hg_end_unmarked"
  private val End = "__hg_end"
  private val Late = "__hg_late_row"
  private val Count = "__hg_count"
  private val Rows = "rows"
  private val Place = "__hg_place"
  private val First = "__hg_first"
  private val Last = "__hg_last"

  /**
   * @param keys     columns of the stream
   * @param names    what the keys are called in the results
   * @param time     the column with the event time; of windows of processing time null
   * @param position the column with the rows' places in their source, if the stream has it
   * @param row      the columns of a late row; null if late rows are only counted
   * @param timeName, lateName what the results' event time and the late row are called
   */
  def apply(stream: ApiFrame, spec: String, keys: JList[String], names: JList[String], time: String,
      position: String, aggregates: JList[Column], conditions: JList[Column], row: JList[String], timeName: String,
      lateName: String): ApiFrame = {
    val window = Windowing.parse(spec)
    val late = new LateBefore(window.step)
    val keyNames = keys.asScala.toSeq
    val made = Grouped(inWindows(stream, window, late, time, Option(row).map(_.asScala.toSeq)),
      keyNames ++ Seq(End, Late), Grouped.seen(stream, aggregates) :+ count(lit(1)).as(Count))
    val aggregate = replayable(Frames.plan(made).asInstanceOf[Aggregate], late, Seq(position, time))
    val lateRow = Option(row).map(_ => stream.select(row.asScala.map(quoted).toSeq: _*).schema.asNullable)
    val output = outputOf(aggregate, names.asScala.toSeq, aggregate.output.slice(
      keyNames.length + 2, aggregate.output.length - 1), timeName) ++ lateRow.map(AttributeReference(lateName, _)())
    val tested = conditions.asScala.toSeq.map { c =>
      Frames.plan(made.filter(c)).collectFirst { case f: Filter => f.condition }.get
    }
    Frames.like(made, KeyedWindow(aggregate, window, keyNames.length, tested, lateRow, late, Nil, output))
  }

  /**
   * The first rows of each key and window in an order, with their rank.
   *
   * @param row   the columns that leave beside the keys
   * @param place columns by which rows come that are alike in `by`
   * @param rank  what the rank is called
   */
  def top(stream: ApiFrame, spec: String, n: Int, keys: JList[String], names: JList[String], time: String,
      row: JList[String], place: JList[String], by: JList[Column], rank: String, lateNames: JList[String],
      timeName: String, lateName: String): ApiFrame = {
    val window = Windowing.parse(spec)
    val late = new LateBefore(window.step)
    val (keyNames, shown) = (keys.asScala.toSeq, row.asScala.toSeq)
    val plan = Frames.plan(stream)
    val all = by.asScala.toSeq ++ place.asScala.map(quoted)
    val order = Frames.plan(stream.sort(all: _*)).collectFirst { case s: Sort => s.order }.get
    val first = (shown ++ place.asScala).map(Frames.column(plan, _))
    // the order may go by a column of the key, or by one that no row shows
    val kept = first ++ AttributeSet(order.flatMap(_.references)).toSeq.filterNot(AttributeSet(first).contains)
    val rows = FirstRows(kept, kept.map(_.name), order.map(o => BindReferences.bindReference(o, kept)
      .copy(sameOrderExpressions = Nil)), n).toAggregateExpression()
    val made = Grouped(inWindows(stream, window, late, time, Option(lateNames).map(_.asScala.toSeq)),
      keyNames ++ Seq(End, Late), Seq(Frames.column(rows).as(Rows), count(lit(1)).as(Count)))
    val aggregate = Aggregation.identified(Frames.plan(made).asInstanceOf[Aggregate])
    val lateRow = Option(lateNames).map(_ => stream.select(lateNames.asScala.map(quoted).toSeq: _*).schema.asNullable)
    def column(name: String, dataType: DataType) = AttributeReference(name, dataType)()
    val output = aggregate.output.zip(names.asScala).map { case (a, name) => column(name, a.dataType) } ++
      Seq(column("window_start", TimestampType), column("window_end", TimestampType), column(rank, IntegerType)) ++
      first.take(shown.length).map(a => column(a.name, a.dataType)) ++ Seq(column(timeName, TimestampType)) ++
      lateRow.map(AttributeReference(lateName, _)())
    Frames.like(made, KeyedWindow(aggregate, window, keyNames.length, Nil, lateRow, late, shown.indices, output))
  }

  /**
   * Windows of so many rows, which need neither event time nor a watermark.
   *
   * @param position the column with the rows' places in their source
   * @param time     the column with the event time, or null
   */
  def counted(stream: ApiFrame, step: String, size: Long, every: Long, keys: JList[String],
      names: JList[String], position: String, time: String, aggregates: JList[Column],
      timeName: String): ApiFrame = {
    val keyNames = keys.asScala.toSeq
    val at = Option(time).map(quoted).getOrElse(lit(null).cast(TimestampType))
    val made = Grouped(stream.select(col("*"), quoted(position).as(Place, Aggregation.marked)),
      keyNames :+ Place, Grouped.seen(stream, aggregates) ++ Seq(min(at).as(First), max(at).as(Last)))
    val batch = new BatchValues(step)
    val aggregate = replayable(Frames.plan(made).asInstanceOf[Aggregate], batch, Seq(position))
    val results = aggregate.output.slice(keyNames.length + 1, aggregate.output.length - 2)
    val parts = Aggregation.parts(aggregate)
    Frames.like(made, CountWindow(aggregate, step, size, every, keyNames.length,
      CountStores.layout(parts, keyNames.length), new KnownFunctions(parts.named), batch,
      outputOf(aggregate, names.asScala.toSeq, results, timeName)))
  }

  /** The stream with a key that is the same for all rows. */
  def unkeyed(stream: ApiFrame, name: String): ApiFrame =
    stream.withColumn(name, Frames.column(OneKey()))

  private def outputOf(aggregate: Aggregate, names: Seq[String], results: Seq[Attribute],
      timeName: String): Seq[Attribute] = {
    def column(name: String, dataType: DataType) = AttributeReference(name, dataType)()
    aggregate.output.zip(names).map { case (a, name) => column(name, a.dataType) } ++
      Seq(column("window_start", TimestampType), column("window_end", TimestampType)) ++
      results.map(a => column(a.name, a.dataType)) ++
      Seq(column("is_partial", BooleanType), column("fired_by", StringType), column("pane", IntegerType),
        column(timeName, TimestampType))
  }

  /** The stream with a row for each open window; one without an end, for `.late`, if there is none. */
  private def inWindows(stream: ApiFrame, window: Windowing, late: LateBefore, time: String,
      row: Option[Seq[String]]): ApiFrame = {
    val at = if (window.processing) BatchTime(late) else Frames.expression(quoted(time))
    val end =
      if (window.session) Frames.column(SessionEnd(at, window.size))
      else if (window.slide == window.size) Frames.column(
        OpenWindowEnd(at, late, window.size, window.offset, window.lateness))
      else explode(Frames.column(
        OpenWindowEnds(at, late, window.size, window.slide, window.offset, window.lateness)))
    // a session that this row would end may be closed, and yet the row may lengthen an open one
    val closed = Frames.column(
      IsClosed(Frames.expression(col(Unmarked)), late, window.lateness))
    val rest = row match {
      case Some(columns) => Frames.column(PackedRow(
        Frames.expression(struct(columns.map(quoted): _*))))
      case None => lit(true)
    }
    stream.select(col("*"), end.as(Unmarked)) // an exploded column keeps no metadata
      .select(col("*"), col(Unmarked).as(End, Aggregation.marked), when(closed, rest).as(Late))
  }

  /** The same with functions whose values a replayed batch finds again. */
  private def replayable(aggregate: Aggregate, batch: BatchValues, columns: Seq[String]): Aggregate = {
    val places = columns.flatMap(name => aggregate.child.output.find(_.name == name))
    Aggregation.identified(Replayable(aggregate, BatchNumber(batch) +: places))
  }

  /**
   * An aggregation as steps do it: what is left in it that gives another value in a replay does so there, too.
   *
   * @param ordered whether the step knows the places of rows
   */
  def replayable(made: ApiFrame, ordered: Boolean): ApiFrame = Frames.like(made, Frames.plan(made) match {
    case aggregate: Aggregate => Replayable(aggregate, if (ordered) Seq(BatchNumber(new BatchValues(""))) else Nil)
    case other => other
  })

  /** Whether one of the aggregates needs to know the places of rows. */
  def needsOrder(made: ApiFrame): Boolean = Frames.plan(made).expressions.exists(_.exists(Replayable.needsOrder))

  /** Why these aggregates, or keys that are selected, cannot be used in windows, or null. */
  def problem(made: ApiFrame): String = {
    val plan: LogicalPlan = Frames.plan(made)
    // the optimizer leaves it out of the columns that an aggregation is grouped by
    val constant = plan match {
      case Project(keys, _) => keys.collect { case a: Alias if a.child.foldable => s"${a.child.sql} is the same in every row" }
      case _ => Nil
    }
    (constant ++ plan.expressions.flatMap(_.collect {
      case a: AggregateExpression if Replayable.problem(a) != null => Replayable.problem(a)
      case p: PythonFuncExpression => s"${p.sql} is a Python function"
      case s: SubqueryExpression => s"${s.sql} is a subquery"
    })).headOption.orNull
  }
}
