package org.apache.spark.sql.headgate.steps.process

import org.apache.spark.api.python.PythonFunction
import org.apache.spark.sql.{DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, MapInArrow, UnaryNode}
import org.apache.spark.sql.classic.{DataFrame, Dataset}
import org.apache.spark.sql.headgate.store.{KeepsState, StoreSpec}
import org.apache.spark.sql.types._

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
    stores: Seq[StoreSpec], output: Seq[Attribute]) extends UnaryNode with KeepsState {
  override def step: String = spec.step
  override def producedAttributes: AttributeSet = AttributeSet(output)
  // all that comes goes to Python: column pruning must not change it
  @transient override lazy val references: AttributeSet = child.outputSet
  override protected def withNewChildInternal(c: LogicalPlan): Process = copy(child = c)
}

/** What headgate/kernel.py calls for process functions. */
object ProcessApi {
  /** @param mapped `stream.mapInArrow(function, ...)`: only its pickled function is used */
  def apply(stream: ApiFrame, mapped: ApiFrame, told: String): ApiFrame = {
    val spec = ProcessSpec.parse(told)
    val frame = stream.asInstanceOf[DataFrame]
    val plan = frame.queryExecution.analyzed
    def column(name: String): Attribute = plan.output.find(_.name == name).getOrElse(
      throw new IllegalArgumentException(s"no column $name in ${plan.output.map(_.name).mkString(", ")}"))
    val udf = mapped.asInstanceOf[DataFrame].queryExecution.analyzed.collectFirst {
      case m: MapInArrow => m.functionExpr.asInstanceOf[PythonUDF]
    }.get
    val keys = (0 until spec.keys).map(i => column(s"${ProcessSpec.Key}$i"))
    val output = AttributeReference(spec.position, LongType)() +:
      AttributeReference(spec.time, TimestampType)() +:
      spec.outputs.zipWithIndex.map { case (s, i) => AttributeReference(s"${ProcessSpec.Output}$i", s)() }
    Dataset.ofRows(frame.sparkSession, Process(plan, spec, keys, column(ProcessSpec.Input),
      column(spec.position), column(spec.time), plan.output.find(_.name == ProcessSpec.Tie),
      (0 until spec.inputs).map(i => column(s"${ProcessSpec.Row}$i")),
      new PythonTask(udf.func, udf.resultId.id),
      ProcessStores.layout(spec, keys.map(_.dataType)), output))
  }
}
