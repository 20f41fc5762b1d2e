/** Owns the decode step as a logical plan node, and the door to it from Python. */
package org.apache.spark.sql.headgate.decode

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{DataFrame => ApiDataFrame}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.catalyst.types.DataTypeUtils.toAttributes
import org.apache.spark.sql.classic.{DataFrame, Dataset}
import org.apache.spark.sql.types.{DataType, StructType}

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
    * @param schemaJson the records' schema as Spark's JSON of a struct type
    */
  def apply(
      df: ApiDataFrame,
      schemaJson: String,
      topic: String,
      step: String,
      malformed: String,
      table: Boolean,
      keyColumns: java.util.List[String]): ApiDataFrame = {
    val raw = df.asInstanceOf[DataFrame]
    val schema = DataType.fromJson(schemaJson).asInstanceOf[StructType].asNullable
    val spec =
      DecodeSpec(schema, topic, step, malformed, table, keyColumns.asScala.toSeq)
    val plan = raw.queryExecution.analyzed
    Dataset.ofRows(raw.sparkSession, Decode(spec, toAttributes(spec.outputSchema), plan))
  }
}
