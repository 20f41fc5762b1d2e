/** Owns the decode step as a logical plan node. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.Session

/** Raw records in, the schema's columns and the hidden ones out (see [[DecodeSpec]]).
  *
  * `references` are the whole child, so that no optimizer rule takes away a raw column.
  */
case class Decode(spec: DecodeSpec, output: Seq[Attribute], child: LogicalPlan)
  extends UnaryNode with PlansItself {
  @transient override lazy val references: AttributeSet = child.outputSet
  override def producedAttributes: AttributeSet = outputSet
  override lazy val resolved: Boolean = childrenResolved
  override def maxRows: Option[Long] = child.maxRows
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    DecodeExec(spec, output, planLater(child))
  override protected def withNewChildInternal(newChild: LogicalPlan): Decode =
    copy(child = newChild)
}
