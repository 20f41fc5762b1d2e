package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.{Replicas, RunningBatch, Session}
import org.apache.spark.sql.headgate.store.{KeepNormal, KeepsState, KeyMerge, StoreSpec}

/** What becomes of a stream row whose key is not in the table. */
sealed trait Missing
object Missing {
  /** It goes on with a null row. */
  case object Null extends Missing
  case object Drop extends Missing
  /** It leaves by the side output, which is a filter on the null row. */
  case object Side extends Missing
  /** It is held in state until its table row comes, or the time is up: then as `Side`. */
  case class Wait(millis: Long) extends Missing

  def parse(text: String): Missing = text match {
    case "null" => Null
    case "drop" => Drop
    case "side" => Side
    case s if s.startsWith("wait:") => Wait(s.stripPrefix("wait:").toLong)
  }
}

/**
 * Stream rows (left) with the latest table row (right) of the same key appended as one struct.
 *
 * Every attribute is a field of its own (or in a Seq or Option): the optimizer renames attributes
 * in those only, and would leave those inside a case class of ours as they were.
 *
 * @param rightKeys, value, position, deleted what the columns of the table side mean
 * @param rider a column of the left side that is not null in rows which are on their way to a sink
 *              already: they pass through untouched and uncounted
 * @param held  the event time of the left side, if rows that wait hold the job's watermark
 * @param ttlMs after how much time without an update a table row is forgotten
 * @param rowTime the event time of the table's rows, if that time is meant, and not that of batches
 * @param replicated whether every partition has the whole table: the stream stays where it is
 */
case class Lookup(left: LogicalPlan, right: LogicalPlan, step: String, leftKeys: Seq[Attribute],
    rightKeys: Seq[Attribute], value: Attribute, position: Option[Attribute],
    deleted: Option[Attribute], found: AttributeReference, missing: Missing,
    rider: Option[Attribute], held: Option[Attribute], ttlMs: Option[Long], rowTime: Option[Attribute],
    replicated: Boolean)
  extends BinaryNode with KeepsState with PlansItself {
  override def stores: Seq[StoreSpec] =
    LookupStores.of(rightKeys, value, missing, left.output, rider, held, ttlMs.isDefined, replicated)
  override def keyMerge(drops: Boolean): KeyMerge = KeepNormal
  override def output: Seq[Attribute] = left.output :+ found
  override def producedAttributes: AttributeSet = AttributeSet(found)

  // All of the right side is state, and all of the left side where rows wait: column pruning
  // (which looks at what is used further on) must never change what is stored.
  @transient override lazy val references: AttributeSet = {
    val stream = missing match {
      case Missing.Wait(_) => left.outputSet
      case _ => AttributeSet(leftKeys ++ rider)
    }
    stream ++ right.outputSet
  }

  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan = {
    val batch = RunningBatch.of(session)
    val changes = planLater(right)
    LookupExec(planLater(left), if (replicated) Replicas.of(changes, session, batch) else changes, step,
      leftKeys, rightKeys, value, position, deleted, found, missing, rider, held, ttlMs, rowTime, replicated,
      batch)
  }

  override protected def withNewChildrenInternal(l: LogicalPlan, r: LogicalPlan): Lookup =
    copy(left = l, right = r)
}
