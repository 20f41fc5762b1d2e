/** Owns what Python asks about a DataFrame's plan, and the nodes that share, count and split its rows. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.{DataFrame => ApiFrame, SparkSession => ApiSession}
import org.apache.spark.sql.catalyst.expressions.Alias
import org.apache.spark.sql.catalyst.plans.logical.Project
import org.apache.spark.sql.headgate.batch.BatchInstant
import org.apache.spark.sql.headgate.planning.{
  Branch, Carry, Chain, CountRows, Inspect, NewestByKey, ObserveTime, SplitBuilder, Tee, Unplaced}
import org.apache.spark.sql.headgate.sinks.core.RowPlaces
import org.apache.spark.sql.headgate.spark.{Frames, Sessions}
import org.apache.spark.sql.headgate.store.NormalKeys
import org.apache.spark.sql.functions.{col, lit, struct}
import org.apache.spark.sql.types.{DataType, StructType}

object FrameApi {
  private val json = new ObjectMapper

  /** Columns in SQL, as a JSON array, of the rows that a condition in SQL keeps: null keeps all.
    *
    * One call for what takes Python several for every column.
    */
  def select(df: ApiFrame, columnsJson: String, where: String): ApiFrame = {
    val kept = if (where == null) df else df.where(where)
    kept.selectExpr(texts(columnsJson).toIndexedSeq: _*)
  }

  /** A frame's rows as rows of the writer: those of the sink with this number, or of none if it is
    * below zero.
    */
  def sinkRows(df: ApiFrame, number: Int, sink: String, schemasJson: String): ApiFrame = {
    val slots = texts(schemasJson).zipWithIndex.map { case (schema, at) =>
      val row = if (at == number) struct(df.columns.toIndexedSeq.map(name => col(s"`$name`")): _*)
        else lit(null).cast(DataType.fromJson(schema))
      row.as(s"r$at")
    }
    val place = if (number < 0) lit(null).cast("int") else lit(number)
    df.select(place.as(sink) +: slots.toIndexedSeq: _*)
  }

  private def texts(array: String): Array[String] = json.readValue(array, classOf[Array[String]])

  /** An empty streaming DataFrame: steps are analysed on it while the graph is built. */
  def prototype(session: ApiSession, schemaJson: String): ApiFrame =
    Frames.of(Sessions.of(session),
      Inspect.prototype(DataType.fromJson(schemaJson).asInstanceOf[StructType]))

  def stateful(df: ApiFrame): String = Inspect.stateful(Frames.plan(df))
  def nondeterministic(df: ApiFrame): String = Inspect.nondeterministic(Frames.plan(df))

  /** The sources by name, as they stand in the offset log: one for each leaf, from the left. */
  def sourceOrder(df: ApiFrame): JList[String] = Inspect.sourceOrder(Frames.plan(df)).asJava

  /** The same columns, of which those with these names are keys in normal form. */
  def normalKeys(df: ApiFrame, names: JList[String]): ApiFrame = {
    val plan = Frames.plan(df)
    Frames.like(df, Project(NormalKeys.columns(plan.output, names.asScala.toSet), plan))
  }

  /** The rows with one more column: the time of the batch that they are in. */
  def withBatchTime(df: ApiFrame, name: String): ApiFrame = {
    val plan = Frames.plan(df)
    Frames.like(df, Project(plan.output :+ Alias(BatchInstant(), name)(), plan))
  }

  /** @param df a repartition of the rows that several steps use */
  def tee(df: ApiFrame): ApiFrame = Frames.like(df, Tee(Frames.plan(df).mapChildren(Unplaced(_))))

  def count(df: ApiFrame, step: String, output: String): ApiFrame =
    Frames.like(df, CountRows(Frames.plan(df), step, output))

  /** The rows of a source; its watermark follows the times in a column of them. */
  def observe(df: ApiFrame, source: String, at: String): ApiFrame = {
    val rows = Frames.plan(df)
    Frames.like(df, ObserveTime(rows, source, Frames.column(rows, at)))
  }

  /** The newest change of each key in a batch, and records that did not parse. */
  def newest(df: ApiFrame, keys: JList[String], position: String, bad: String): ApiFrame = {
    val rows = Frames.plan(df)
    val by = keys.asScala.map(Frames.column(rows, _)).toSeq
    Frames.like(df, NewestByKey(by, Frames.column(rows, position), Frames.column(rows, bad), rows))
  }

  /** The users of a shared stream in one pass, or null if one of them is no plain chain. */
  def split(base: ApiFrame, branches: JList[ApiFrame], sinks: JList[Integer],
      sinkSchemas: JList[String], spreadBy: JList[String], riders: Boolean): ApiFrame =
    SplitBuilder.build(Frames.plan(base),
      branches.asScala.zip(sinks.asScala).map { case (b, s) => Branch(Frames.plan(b), s.intValue) }.toSeq,
      sinkSchemas.asScala.map(DataType.fromJson(_).asInstanceOf[StructType]).toSeq,
      spreadBy.asScala.toSeq, riders).map(Frames.like(base, _)).orNull

  def isChain(base: ApiFrame, top: ApiFrame): Boolean =
    Chain.of(Frames.plan(top), Frames.plan(base)).isDefined

  /** The writer's rows with the places of those that the sinks with these numbers get. */
  def numbered(df: ApiFrame, sinks: JList[Integer]): ApiFrame =
    Frames.like(df, RowPlaces.add(Frames.plan(df), sinks.asScala.map(_.intValue).toSeq))

  /** The same rows with a column of `base` that the steps up to `top` do not show, or null. */
  def carry(base: ApiFrame, top: ApiFrame, name: String): ApiFrame = {
    val below = Frames.plan(base)
    Carry.through(Frames.plan(top), below, Frames.column(below, name)).map(Frames.like(base, _)).orNull
  }

  /** What the rows of `top` call a column of `base` that they show as it is, or null. */
  def nameOf(base: ApiFrame, top: ApiFrame, name: String): String = {
    val below = Frames.plan(base)
    Carry.nameOf(Frames.plan(top), below, Frames.column(below, name)).orNull
  }

  /** The columns of its child that a projection reads. */
  def columnsRead(df: ApiFrame): JList[String] = Frames.plan(df).references.toSeq.map(_.name).distinct.asJava
}
