package org.apache.spark.sql.headgate.planning

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.plans.physical._
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.counters.{Counters, StepCounter}
import org.apache.spark.sql.headgate.spark.{GeneratedCode, Session}

/**
 * Every user of a shared stream fed in one pass: each row of the child is tried on each branch and
 * gives a row of the common output for each branch that takes it.
 *
 * @param conditions per branch, per stage: the filter (a true literal where there is none)
 * @param counted    per branch, per stage: what is counted there
 * @param values     per branch: the whole output row
 * @param isRiding   true for a row of the child that is on its way to a sink already
 * @param ridersPass whether such rows go on here, as `riderValues`, or in another branch
 *
 * No expression stands inside a case class of ours: the optimizer would not see it there.
 */
case class Split(child: LogicalPlan, conditions: Seq[Seq[Expression]],
    counted: Seq[Seq[Option[Counted]]], values: Seq[Seq[Expression]],
    isRiding: Option[Expression], ridersPass: Boolean, riderValues: Seq[Expression],
    output: Seq[Attribute]) extends UnaryNode with PlansItself {
  override def producedAttributes: AttributeSet = AttributeSet(output)
  @transient override lazy val references: AttributeSet = AttributeSet.fromAttributeSets(
    (conditions.flatten ++ values.flatten ++ isRiding ++ riderValues).map(_.references))
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    SplitExec(planLater(child), conditions, counted, values, isRiding, ridersPass, riderValues, output)
  override protected def withNewChildInternal(c: LogicalPlan): Split = copy(child = c)
}

case class SplitExec(child: SparkPlan, conditions: Seq[Seq[Expression]],
    counted: Seq[Seq[Option[Counted]]], values: Seq[Seq[Expression]],
    isRiding: Option[Expression], ridersPass: Boolean, riderValues: Seq[Expression],
    output: Seq[Attribute]) extends UnaryExecNode {
  override def producedAttributes: AttributeSet = AttributeSet(output)
  override protected def withNewChildInternal(c: SparkPlan): SplitExec = copy(child = c)

  // Spark describes the plan of every batch, twice: this one would be pages of structs
  override def stringArgs: Iterator[Any] = Iterator(s"${values.length} branches", output.map(_.name))

  // Rows stay where they are. If every branch passes the partitioning columns on as they are, the
  // output is partitioned by them too, and the next keyed step needs no shuffle.
  override def outputPartitioning: Partitioning = child.outputPartitioning match {
    case h: HashPartitioning =>
      val rows = if (isRiding.isDefined && ridersPass) values :+ riderValues else values
      val mapped = h.expressions.map { e =>
        output.indices.find(i => rows.forall(_(i).semanticEquals(e))).map(output(_))
      }
      if (mapped.forall(_.isDefined)) HashPartitioning(mapped.map(_.get), h.numPartitions)
      else UnknownPartitioning(h.numPartitions)
    case p => UnknownPartitioning(p.numPartitions)
  }

  override protected def doExecute(): RDD[InternalRow] = {
    val counters: Seq[Seq[StepCounter]] = counted.map(_.map {
      case Some(c) => Counters.register(session, c.step, c.output)
      case None => null
    })
    val (cs, vs, test, pass, rd, in) =
      (conditions, values, isRiding, ridersPass, riderValues, child.output)
    child.execute().mapPartitionsInternal { rows =>
      new SplitRows(rows, in, cs, counters, vs, test, pass, rd)
    }
  }
}

/** The rows of one partition. */
private final class SplitRows(rows: Iterator[InternalRow], in: Seq[Attribute],
    conditions: Seq[Seq[Expression]], counters: Seq[Seq[StepCounter]],
    values: Seq[Seq[Expression]], riderTest: Option[Expression], passes: Boolean,
    riderValues: Seq[Expression]) extends Iterator[InternalRow] {
  private def predicate(e: Expression): BasePredicate = e match {
    case Literal.TrueLiteral => null
    case other => GeneratedCode.predicate(other, in)
  }
  private val tests: Array[Array[BasePredicate]] = conditions.map(_.map(predicate).toArray).toArray
  private val counts: Array[Array[StepCounter]] = counters.map(_.toArray).toArray
  private val makers: Array[UnsafeProjection] = values.map(GeneratedCode.projection(_, in)).toArray
  private val isRiding = riderTest.map(predicate).orNull
  private val rider = riderTest.map(_ => GeneratedCode.projection(riderValues, in)).orNull
  private val branches = makers.length

  private var row: InternalRow = null
  private var branch = branches
  private var out: InternalRow = null

  override def hasNext: Boolean = {
    while (out == null && (branch < branches || rows.hasNext)) {
      if (branch >= branches) {
        row = rows.next()
        if (isRiding != null && isRiding.eval(row)) { if (passes) out = rider(row) }
        else branch = 0
      } else {
        if (takes(branch)) out = makers(branch)(row)
        branch += 1
      }
    }
    out != null
  }

  private def takes(b: Int): Boolean = {
    val t = tests(b); val c = counts(b)
    var i = 0
    while (i < t.length) {
      if (t(i) != null && !t(i).eval(row)) return false
      if (c(i) != null) c(i).inc()
      i += 1
    }
    true
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val r = out
    out = null
    r
  }
}
