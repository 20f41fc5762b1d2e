/** Owns how a logical node of ours becomes a physical operator. */
package org.apache.spark.sql.headgate.planning

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.spark.Session

/** A logical node that makes its own physical operator: the strategy knows no kinds of nodes. */
trait PlansItself { self: LogicalPlan =>

  /** @param planLater a place for the plan of a child, which Spark fills in */
  def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan
}
