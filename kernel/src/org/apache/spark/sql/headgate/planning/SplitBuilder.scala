package org.apache.spark.sql.headgate.planning

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.types._

/** One user of the shared stream: a sink by its number, or (sink < 0) the stream that goes on. */
case class Branch(top: LogicalPlan, sink: Int)

/**
 * Builds the Split of a shared stream.
 *
 * Rows for sinks become `__hg_out STRUCT<sink INT, r0 STRUCT, r1 STRUCT, ...>` beside the columns of
 * the stream that goes on (which are null in them, but for the next step's key: that spreads
 * them over the next shuffle). Where no stream goes on, the output is `__hg_sink, r0, r1, ...`.
 */
object SplitBuilder {
  val Out = "__hg_out"
  val Sink = "__hg_sink"

  def outType(sinkTypes: Seq[StructType]): StructType =
    StructType(StructField("sink", IntegerType) +: sinkTypes.zipWithIndex.map { case (t, i) =>
      StructField(s"r$i", t.asNullable)
    })

  /** None if some branch is not a plain chain of select and filter over the shared stream. */
  def build(shared: LogicalPlan, branches: Seq[Branch], sinkTypes: Seq[StructType],
      spreadBy: Seq[String], riders: Boolean): Option[LogicalPlan] = {
    val chains = branches.map(b => Chain.of(b.top, shared))
    if (chains.exists(_.isEmpty)) None
    else {
      val out = outType(sinkTypes)
      val live = branches.zip(chains.flatten).filter(_._1.sink < 0).map(_._2)
      val rider = shared.output.find(_.name == Out)
      val liveColumns = live.headOption.toSeq.flatMap(c => c.output.map(_.toAttribute).zip(c.values))
        .filter(_._1.name != Out)
      val columns = liveColumns.map { case (a, _) => AttributeReference(a.name, a.dataType)() }
      val goesOn = live.nonEmpty
      val output: Seq[AttributeReference] =
        if (goesOn) columns :+ AttributeReference(Out, out)()
        else AttributeReference(Sink, IntegerType)() +: out.fields.tail.map(f => AttributeReference(f.name, f.dataType)()).toSeq

      // what a sink's row holds in the columns of the stream that goes on
      val filler = liveColumns.map {
        case (a, v: Attribute) if live.size == 1 && spreadBy.contains(a.name) => v
        case (a, _) => Literal(null, a.dataType)
      }
      def sinkRow(sink: Int, c: Chain): Seq[Expression] = {
        val struct = CreateNamedStruct(c.output.zip(c.values).flatMap { case (n, v) => Seq(Literal(n.name), v) })
        val slots = out.fields.tail.zipWithIndex.map { case (f, i) =>
          if (i == sink) struct else Literal(null, f.dataType)
        }.toSeq
        if (goesOn) filler :+ CreateNamedStruct(
          Seq(Literal("sink"), Literal(sink)) ++ slots.zipWithIndex.flatMap { case (s, i) => Seq(Literal(s"r$i"), s) })
        else Literal(sink) +: slots
      }
      val values = branches.zip(chains.flatten).map { case (b, c) =>
        if (b.sink >= 0) sinkRow(b.sink, c)
        else c.output.zip(c.values).filter(_._1.name != Out).map(_._2) :+ Literal(null, out)
      }
      val riderValues = rider.toSeq.flatMap { r =>
        if (goesOn) filler :+ r else out.fields.indices.map(i => GetStructField(r, i))
      }
      val stages = chains.flatten.map(_.stages)
      val split = Split(shared,
        stages.map(_.map(_.condition.getOrElse(Literal.TrueLiteral))),
        stages.map(_.map(_.counted)), values, rider.map(IsNotNull(_)), riders, riderValues, output)
      // what no branch uses is not carried: the rule for that wants a Project to prune
      val needed = shared.output.filter(split.references.contains)
      Some(split.copy(child = if (needed.length < shared.output.length) Project(needed, shared) else shared))
    }
  }
}
