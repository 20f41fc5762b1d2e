/** Owns the process step as Python calls it. */
package org.apache.spark.sql.headgate.api

import org.apache.spark.sql.{DataFrame => ApiFrame}
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, PythonUDF}
import org.apache.spark.sql.catalyst.plans.logical.MapInArrow
import org.apache.spark.sql.headgate.spark.Frames
import org.apache.spark.sql.headgate.steps.process.{Process, ProcessSpec, ProcessStores, PythonTask}
import org.apache.spark.sql.types.{LongType, TimestampType}

object ProcessApi {

  /** @param mapped `stream.mapInArrow(function, ...)`: only its pickled function is used */
  def apply(stream: ApiFrame, mapped: ApiFrame, specJson: String): ApiFrame = {
    val spec = ProcessSpec.parse(specJson)
    val plan = Frames.plan(stream)
    def column(name: String) = Frames.column(plan, name)
    val udf = Frames.plan(mapped).collectFirst {
      case m: MapInArrow => m.functionExpr.asInstanceOf[PythonUDF]
    }.get
    val keys = (0 until spec.keys).map(i => column(s"${ProcessSpec.Key}$i"))
    val output = AttributeReference(spec.position, LongType)() +:
      AttributeReference(spec.time, TimestampType)() +:
      spec.outputs.zipWithIndex.map { case (s, i) => AttributeReference(s"${ProcessSpec.Output}$i", s)() }
    Frames.like(stream, Process(plan, spec, keys, column(ProcessSpec.Input),
      column(spec.position), column(spec.time), plan.output.find(_.name == ProcessSpec.Tie),
      (0 until spec.inputs).map(i => column(s"${ProcessSpec.Row}$i")),
      new PythonTask(udf.func, udf.resultId.id),
      ProcessStores.layout(spec, keys.map(_.dataType)), output))
  }
}
