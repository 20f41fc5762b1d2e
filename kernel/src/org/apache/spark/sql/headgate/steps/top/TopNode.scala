package org.apache.spark.sql.headgate.steps.top

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.{KeyLayout, RunningBatch, Session, StoreShape}
import org.apache.spark.sql.headgate.store.{KeepsState, StoreSpec}
import org.apache.spark.sql.types._

/**
 * The first rows of each key in an order, as changes by key and rank.
 *
 * @param ids     if the rows that come are changes: the columns by which one replaces another; else none
 * @param deleted if so: whether a row deletes
 * @param row     the columns of a row, and where it stands in its source
 * @param shown   which of them leave
 * @param keyOf   for each column that leaves, the key that it is, or -1: what a deletion has
 * @param output  the columns that leave, the rank, and whether the row deletes
 */
case class TopRows(child: LogicalPlan, step: String, n: Int, keys: Seq[Attribute], ids: Seq[Attribute],
    deleted: Option[Attribute], row: Seq[Attribute], order: Seq[SortOrder], shown: Int, keyOf: Seq[Int],
    output: Seq[Attribute]) extends UnaryNode with KeepsState with PlansItself {
  override def stores: Seq[StoreSpec] = TopStores.of(keys, ids, row)
  override def producedAttributes: AttributeSet = AttributeSet(output)
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    TopExec(planLater(child), step, n, keys, ids, deleted, row, order, shown, keyOf, output, RunningBatch.of(session))
  override protected def withNewChildInternal(c: LogicalPlan): TopRows = copy(child = c)
}

/** The rows that are among the first, by key and a number that says nothing; of changes all rows, by their key. */
object TopStores {
  def of(keys: Seq[Attribute], ids: Seq[Attribute], row: Seq[Attribute]): Seq[StoreSpec] = {
    val parts = keys.zipWithIndex.map { case (k, i) => StructField(s"key$i", k.dataType) }
    val more =
      if (ids.isEmpty) Seq(StructField("slot", IntegerType, nullable = false))
      else ids.map(a => StructField(a.name, a.dataType))
    Seq(StoreSpec(StoreShape.DefaultName, StructType(parts ++ more),
      StructType(row.map(a => StructField(a.name, a.dataType))), KeyLayout.Prefix(parts.length), parts.indices))
  }
}
