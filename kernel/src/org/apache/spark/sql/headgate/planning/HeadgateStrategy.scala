/** Owns how Spark comes to plan our logical nodes. */
package org.apache.spark.sql.headgate.planning

import org.apache.spark.sql.{SparkSession => ApiSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.headgate.spark.{Session, Sessions}

/** Lets each of our logical nodes plan itself. */
class HeadgateStrategy(session: Session) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case node: PlansItself => node.physical(session, planLater) :: Nil
    case _ => Nil
  }
}

/** For sessions that were made without our extension; a query plans in a copy of its session, the active one. */
object AddedStrategy extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case node: PlansItself => node.physical(Sessions.active, planLater) :: Nil
    case _ => Nil
  }
}

/** Named in spark.sql.extensions. */
class HeadgateExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(e: SparkSessionExtensions): Unit =
    e.injectPlannerStrategy((s: ApiSession) => new HeadgateStrategy(Sessions.of(s)))
}
