/** Owns the step from a DataFrame of Spark's API to its plan, and back. */
package org.apache.spark.sql.headgate.spark

import org.apache.spark.sql.{DataFrame => ApiFrame, SparkSession => ApiSession}
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.{DataFrame, Dataset, SparkSession}

object Frames {
  def plan(df: ApiFrame): LogicalPlan = classic(df).queryExecution.analyzed

  def session(df: ApiFrame): SparkSession = classic(df).sparkSession

  def session(api: ApiSession): SparkSession = api.asInstanceOf[SparkSession]

  /** The rows of a plan, in the session of another DataFrame. */
  def like(df: ApiFrame, plan: LogicalPlan): ApiFrame = of(session(df), plan)

  def of(session: SparkSession, plan: LogicalPlan): ApiFrame = Dataset.ofRows(session, plan)

  def column(plan: LogicalPlan, name: String): Attribute = plan.output.find(_.name == name).getOrElse(
    throw new IllegalArgumentException(s"no column $name in ${plan.output.map(_.name).mkString(", ")}"))

  private def classic(df: ApiFrame): DataFrame = df.asInstanceOf[DataFrame]
}
