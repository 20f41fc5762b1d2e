/** Owns the decode step as a logical plan node, and the door to it from Python. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.sql.{DataFrame => ApiDataFrame}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.{DataFrame, Dataset}

/** Raw records in, the schema's columns and the hidden ones out (see [[DecodeSpec]]).
  *
  * `references` are the whole child, so that no optimizer rule takes away a raw column.
  */
case class Decode(spec: DecodeSpec, output: Seq[Attribute], child: LogicalPlan) extends UnaryNode {
  @transient override lazy val references: AttributeSet = child.outputSet
  override def producedAttributes: AttributeSet = outputSet
  override lazy val resolved: Boolean = childrenResolved
  override def maxRows: Option[Long] = child.maxRows
  override protected def withNewChildInternal(newChild: LogicalPlan): Decode =
    copy(child = newChild)
}

object DecodeApi {

  /** The decoded records of a DataFrame with the raw columns.
    *
    * @param specJson what [[DecodeSpec.parse]] reads; what cannot work is refused here
    */
  def apply(df: ApiDataFrame, specJson: String): ApiDataFrame = {
    val raw = df.asInstanceOf[DataFrame]
    raw.sparkSession.withActive {
      val spec = DecodeSpec.parse(specJson)
      val plan = raw.queryExecution.analyzed
      RawColumns.find(plan.output, spec)
      Dataset.ofRows(raw.sparkSession, Decode(spec, toAttributes(spec.outputSchema), plan))
    }
  }
}
