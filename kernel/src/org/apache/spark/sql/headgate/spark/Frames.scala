/** Owns the step from a DataFrame of Spark's API to its plan, and back. */
package org.apache.spark.sql.headgate.spark

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{Column, DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, Dataset, ExpressionUtils}
import org.apache.spark.sql.types.StructType

object Frames {
  def plan(df: ApiFrame): LogicalPlan = classic(df).queryExecution.analyzed

  /** The plan when the optimizer has seen it. */
  def optimized(df: ApiFrame): LogicalPlan = classic(df).queryExecution.optimizedPlan

  def session(df: ApiFrame): Session = classic(df).sparkSession

  /** The rows of a plan, in the session of another DataFrame. */
  def like(df: ApiFrame, plan: LogicalPlan): ApiFrame = of(session(df), plan)

  def of(session: Session, plan: LogicalPlan): ApiFrame = Dataset.ofRows(session, plan)

  def column(plan: LogicalPlan, name: String): Attribute = plan.output.find(_.name == name).getOrElse(
    throw new IllegalArgumentException(s"no column $name in ${plan.output.map(_.name).mkString(", ")}"))

  /** An expression as a column of Spark's API, and back. */
  def column(expression: Expression): Column = ExpressionUtils.column(expression)
  def expression(column: Column): Expression = ExpressionUtils.expression(column)

  /** The rows themselves; for few of them. */
  def collect(df: ApiFrame): Array[InternalRow] = classic(df).queryExecution.executedPlan.executeCollect()

  def ofRows(session: Session, rows: RDD[InternalRow], schema: StructType): ApiFrame =
    session.internalCreateDataFrame(rows, schema)

  private def classic(df: ApiFrame): DataFrame = df.asInstanceOf[DataFrame]
}
