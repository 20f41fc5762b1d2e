package org.apache.spark.sql.headgate.steps.lookup

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{BinaryNode, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.{RunningBatch, Session}
import org.apache.spark.sql.headgate.store.{KeepNormal, KeepsState, KeyMerge, StoreSpec}

/**
 * Stream rows (left) with the version of the table's row (right) of the same key that was valid at a time
 * of theirs, appended as one struct. Attributes are fields of their own, as in [[Lookup]].
 *
 * @param at      the time of the left side at which the version must have been valid
 * @param table   the name of the table, whose own watermark says whether a version may still come
 * @param keepMs  how long behind the job's watermark versions are kept
 * @param rowTime from when on a version is valid
 * @param held    the event time of the left side, if rows that wait hold the job's watermark
 */
case class AsOf(left: LogicalPlan, right: LogicalPlan, step: String, table: String, keepMs: Long,
    leftKeys: Seq[Attribute], at: Attribute, rightKeys: Seq[Attribute], value: Attribute, position: Attribute,
    deleted: Attribute, rowTime: Attribute, found: AttributeReference, missing: Missing,
    rider: Option[Attribute], held: Option[Attribute])
  extends BinaryNode with KeepsState with PlansItself {
  override def stores: Seq[StoreSpec] = AsOfStores.of(rightKeys, value, left.output, rider, held)
  override def keyMerge(drops: Boolean): KeyMerge = KeepNormal
  override def output: Seq[Attribute] = left.output :+ found
  override def producedAttributes: AttributeSet = AttributeSet(found)
  // rows wait, so that all of both sides is state: column pruning must not change what is stored
  @transient override lazy val references: AttributeSet = left.outputSet ++ right.outputSet

  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    AsOfExec(planLater(left), planLater(right), step, table, keepMs, leftKeys, at, rightKeys, value, position,
      deleted, rowTime, found, missing, rider, held, RunningBatch.of(session))

  override protected def withNewChildrenInternal(l: LogicalPlan, r: LogicalPlan): AsOf = copy(left = l, right = r)
}
