/** Owns how Spark comes to plan our logical nodes. */
package org.apache.spark.sql.headgate.planning

import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{SparkSession => ApiSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.headgate.spark.RunningBatch
import org.apache.spark.sql.headgate.steps.decode.DecodeStrategy
import org.apache.spark.sql.headgate.steps.lookup.{Lookup, LookupExec}
import org.apache.spark.sql.headgate.steps.process.{Process, ProcessExec}
import org.apache.spark.sql.headgate.steps.window.{CountWindow, KeyedWindow, WindowStrategy}

/** Makes physical operators of our logical nodes. */
class HeadgateStrategy(session: SparkSession) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case l: Lookup =>
      LookupExec(planLater(l.left), planLater(l.right), l.step, l.leftKeys, l.rightKeys, l.value,
        l.position, l.deleted, l.found, l.missing, l.rider, l.held, RunningBatch.of(session)) :: Nil
    case s: Split =>
      SplitExec(planLater(s.child), s.conditions, s.counted, s.values, s.isRiding, s.ridersPass,
        s.riderValues, s.output) :: Nil
    case w: KeyedWindow => WindowStrategy.plan(session, w, planLater) :: Nil
    case w: CountWindow => CountWindow.plan(session, w, planLater) :: Nil
    case p: Process =>
      ProcessExec(planLater(p.child), p.spec, p.keys, p.input, p.position, p.time, p.tie, p.rows, p.task,
        p.stores, p.output, RunningBatch.of(session)) :: Nil
    case t: Tee => TeeExec(planLater(t.child)) :: Nil
    case u: Unplaced => UnplacedExec(planLater(u.child)) :: Nil
    case c: CountRows => CountRowsExec(planLater(c.child), c.step, c.counted) :: Nil
    case o: ObserveTime => ObserveTimeExec(planLater(o.child), o.source, o.at) :: Nil
    case other => DecodeStrategy.plan(session, other)
  }
}

/** Named in spark.sql.extensions. */
class HeadgateExtensions extends (SparkSessionExtensions => Unit) {
  override def apply(e: SparkSessionExtensions): Unit =
    e.injectPlannerStrategy((s: ApiSession) => new HeadgateStrategy(s.asInstanceOf[SparkSession]))
}
