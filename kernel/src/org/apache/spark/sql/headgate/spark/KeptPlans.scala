/** Owns plans that serve one batch of a query after the other. */
package org.apache.spark.sql.headgate.spark

import java.util.LinkedHashMap
import java.util.concurrent.atomic.AtomicLong

import scala.annotation.nowarn

import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.analysis.Analyzer
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.Optimizer
import org.apache.spark.sql.catalyst.plans.logical.{DeserializeToObject, LocalRelation, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern.{CURRENT_LIKE, PLAN_EXPRESSION}
import org.apache.spark.sql.connector.catalog.CatalogManager
import org.apache.spark.sql.execution.datasources.v2.{StreamingDataSourceV2ScanRelation, V2Writes, WriteToDataSourceV2}
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.execution.streaming.sources.WriteToMicroBatchDataSource
import org.apache.spark.sql.internal.SessionState
import org.apache.spark.sql.streaming.StreamingQuery

/**
 * Spark analyses and optimizes the plan of each batch from the start, though two batches of a query
 * differ only in where their sources begin and end, in which sources have rows, and in their number.
 * Here the optimized plan of a batch is kept, and the next one with the same sources gets it with its
 * own offsets and its own write. Physical plans are made anew: they have the state of their batch.
 *
 * MicroBatchExecution.runBatch asks the session that Spark clones for each query. Its `analyzer` and
 * `optimizer` are lazy values of SessionState, which are replaced in the clone and in no other session.
 */
object KeptPlans {
  /** `true`; `false`: each plan is made anew; `check`: it is, and must be the same (for tests). */
  val Setting = "spark.headgate.plan.reuse"

  /** How many batches of this process had the plan of another one. */
  val used = new AtomicLong

  private[spark] def setting(session: Session): String = {
    val how = Sessions.setting(session, Setting).getOrElse("true")
    require(Set("true", "false", "check").contains(how), s"$Setting must be true, false or check, got '$how'")
    how
  }

  /** Serves the batches of a query from now on. */
  private[spark] def serve(query: StreamingQuery, how: String): Unit = query match {
    case wrapper: StreamingQueryWrapper if how != "false" =>
      val state = wrapper.streamingQuery.sparkSessionForStream.sessionState
      replace(state, "analyzer", new KeptAnalyzer(state.analyzer))
      replace(state, "optimizer", new KeptOptimizer(state.optimizer, state.catalogManager, how == "check"))
    case _ =>
  }

  private def replace(state: SessionState, name: String, by: AnyRef): Unit = {
    val field = classOf[SessionState].getDeclaredField(name)
    field.setAccessible(true)
    field.set(state, by)
  }
}

/** The plan of a batch without what differs from one to the next. */
private object Shape {
  def of(plan: LogicalPlan): Option[LogicalPlan] = plan match {
    case write: WriteToMicroBatchDataSource if lasts(write) => Some(write.transform {
      case r: StreamingDataSourceV2ScanRelation => r.copy(startOffset = None, endOffset = None)
      case w: WriteToMicroBatchDataSource => w.copy(batchId = None)
    })
    case _ => None
  }

  /** Not with the batch's time as a literal, and not with a table that Spark reads anew in each batch. */
  private def lasts(plan: LogicalPlan): Boolean =
    !plan.containsAnyPattern(CURRENT_LIKE, PLAN_EXPRESSION) && plan.collectLeaves().forall {
      case _: StreamingDataSourceV2ScanRelation => true
      case empty: LocalRelation => empty.data.isEmpty
      case _ => false
    }
}

/** Plans by their shapes, those that were used last. */
private final class ByShape[T] {
  private val Most = 32
  private val kept = new LinkedHashMap[LogicalPlan, T](16, 0.75f, true) {
    override def removeEldestEntry(e: java.util.Map.Entry[LogicalPlan, T]): Boolean = size > Most
  }
  def get(shape: LogicalPlan): Option[T] = synchronized(Option(kept.get(shape)))
  def put(shape: LogicalPlan, made: T): Unit = synchronized(kept.put(shape, made))
}

/** The plan of a query is analysed when it starts: what Spark puts into it for a batch is too. */
private final class KeptAnalyzer(inner: Analyzer) extends Analyzer(inner.catalogManager) {
  private val unchanged = new ByShape[java.lang.Boolean]
  // how rows without columns are read: Spark asks for it in each batch, since a write gives none back
  @volatile private var reading: Option[(Expression, Expression)] = None

  override val extendedCheckRules: Seq[LogicalPlan => Unit] = inner.extendedCheckRules
  override def checkAnalysis(plan: LogicalPlan): Unit = inner.checkAnalysis(plan)
  override def batches: Seq[Batch] = Nil

  override def execute(plan: LogicalPlan): LogicalPlan = plan match {
    case DeserializeToObject(asked, to, none: LocalRelation) if none.output.isEmpty =>
      reading.collect { case (`asked`, resolved) => DeserializeToObject(resolved, to, none) }.getOrElse {
        val made = inner.execute(plan)
        made match {
          case DeserializeToObject(resolved, _, _) => reading = Some(asked -> resolved)
          case _ =>
        }
        made
      }
    case _ => inner.execute(plan)
  }

  override def executeAndCheck(plan: LogicalPlan, tracker: QueryPlanningTracker): LogicalPlan =
    Shape.of(plan) match {
      case Some(shape) if unchanged.get(shape).isDefined => plan.setAnalyzed(); plan
      case shape =>
        val analyzed = inner.executeAndCheck(plan, tracker)
        shape.filter(_ => analyzed == plan).foreach(unchanged.put(_, true))
        analyzed
    }
}

/** @param check whether a plan that is used again must be the one that would be made */
@nowarn("cat=deprecation") // WriteToDataSourceV2 is what Spark itself makes of a batch's write
private final class KeptOptimizer(inner: Optimizer, catalogs: CatalogManager, check: Boolean)
  extends Optimizer(catalogs) {
  private val optimized = new ByShape[WriteToDataSourceV2]

  override def execute(plan: LogicalPlan): LogicalPlan =
    (plan, Shape.of(plan)) match {
      case (write: WriteToMicroBatchDataSource, Some(shape)) => optimized.get(shape) match {
        case Some(before) =>
          KeptPlans.used.incrementAndGet()
          checked(again(before, write), plan)
        case None =>
          val made = inner.execute(plan)
          made match {
            case w: WriteToDataSourceV2 => optimized.put(shape, w)
            case _ =>
          }
          made
      }
      case _ => inner.execute(plan)
    }

  private def again(before: WriteToDataSourceV2, write: WriteToMicroBatchDataSource): LogicalPlan = {
    val sources = write.collect { case r: StreamingDataSourceV2ScanRelation => r.stream -> r }.toMap
    val query = before.query.transform { case r: StreamingDataSourceV2ScanRelation =>
      val now = sources(r.stream)
      r.copy(startOffset = now.startOffset, endOffset = now.endOffset)
    }
    // a write is made for one batch
    val columns = LocalRelation(before.query.output, isStreaming = true)
    V2Writes(write.copy(query = columns)) match {
      case made: WriteToDataSourceV2 => made.copy(query = query)
      case other => throw new IllegalStateException(s"a write must have been planned, got ${other.nodeName}")
    }
  }

  private def checked(used: LogicalPlan, plan: LogicalPlan): LogicalPlan = {
    if (check) {
      val (mine, fresh) = (used.children.head, inner.execute(plan).children.head)
      if (!mine.sameResult(fresh)) throw new IllegalStateException(
        s"a kept plan must be the one that would be made, got\n$mine\nand made\n$fresh")
    }
    used
  }
}
