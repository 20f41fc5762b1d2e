/** Owns the time of the running batch as a column that any task of the batch can make. */
package org.apache.spark.sql.headgate.batch

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.LeafExpression
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenFallback
import org.apache.spark.sql.headgate.spark.{RunningBatch, Session}
import org.apache.spark.sql.types.{DataType, TimestampType}

/** The batch's time in the offset log, the same when the batch is replayed.
  *
  * Spark's `current_timestamp()` becomes a literal, and a plan with it serves one batch only
  * (`KeptPlans`). This one asks the task.
  */
case class BatchInstant() extends LeafExpression with CodegenFallback {
  override def nullable: Boolean = false
  override def foldable: Boolean = false
  override def dataType: DataType = TimestampType
  override def eval(row: InternalRow): Any = BatchInstant.ofTask()
}

object BatchInstant {
  private val Property = "headgate.batch.time"

  /** Lets the tasks of the batch know its time; on the driver, before they are sent.
    *
    * Without state Spark plans a query as it goes (AdaptiveSparkPlanExec): its first stages run before
    * the sinks are asked for anything, so sources call this as well.
    */
  def announce(session: Session): Unit = RunningBatch.of(session).foreach { batch =>
    session.sparkContext.setLocalProperty(Property, s"${batch.id} ${batch.timeMs}")
  }

  private def ofTask(): Long = {
    val known = for {
      task <- Option(TaskContext.get())
      Array(batch, time) <- Option(task.getLocalProperty(Property)).map(_.split(' '))
      if RunningBatch.ofTask(task).contains(batch.toLong)
    } yield time.toLong * 1000
    known.getOrElse(throw new IllegalStateException("a task must know the time of its batch"))
  }
}
