package org.apache.spark.sql.headgate.steps.process

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, UnaryNode}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.headgate.planning.PlansItself
import org.apache.spark.sql.headgate.spark.{PythonFunction, RunningBatch, Session}
import org.apache.spark.sql.headgate.store.{KeepsState, StoreSpec}

/** The pickled function. No expression, so that Spark's rules for Python functions leave it alone. */
final class PythonTask(val function: PythonFunction, val resultId: Long) extends Serializable {
  override def toString: String = "python"
  override def equals(o: Any): Boolean = o match {
    case t: PythonTask => t.resultId == resultId
    case _ => false
  }
  override def hashCode: Int = resultId.hashCode
}

/**
 * A process function over the rows of its inputs, which are in one stream.
 *
 * @param input  the number of a row's input
 * @param tie    what decides between rows of the same time that have no position
 * @param rows   a column for each input, null in the rows of the others
 * @param output place and event time, then a struct for each output, null in the rows of the others
 */
case class Process(child: LogicalPlan, spec: ProcessSpec, keys: Seq[Attribute], input: Attribute,
    position: Attribute, time: Attribute, tie: Option[Attribute], rows: Seq[Attribute], task: PythonTask,
    stores: Seq[StoreSpec], output: Seq[Attribute]) extends UnaryNode with KeepsState with PlansItself {
  override def step: String = spec.step
  override def producedAttributes: AttributeSet = AttributeSet(output)
  // all that comes goes to Python: column pruning must not change it
  @transient override lazy val references: AttributeSet = child.outputSet
  override def physical(session: Session, planLater: LogicalPlan => SparkPlan): SparkPlan =
    ProcessExec(planLater(child), spec, keys, input, position, time, tie, rows, task, stores, output,
      RunningBatch.of(session))
  override protected def withNewChildInternal(c: LogicalPlan): Process = copy(child = c)
}
