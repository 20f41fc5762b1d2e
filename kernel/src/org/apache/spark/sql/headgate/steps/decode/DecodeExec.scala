/** Owns the decode step as a physical operator. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.headgate.batch.BatchInstant
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.{RunningBatch, Scans}

/** One decoded UnsafeRow a record, in the records' order.
  *
  * The counters belong to one batch, so they are made in doExecute and not kept in the node: two
  * uses of a source must compare equal, or Spark does not see that it can share one of them.
  */
case class DecodeExec(spec: DecodeSpec, output: Seq[Attribute], child: SparkPlan)
  extends UnaryExecNode {

  @transient override lazy val references: AttributeSet = child.outputSet
  override def producedAttributes: AttributeSet = outputSet

  override protected def doExecute(): RDD[InternalRow] = {
    BatchInstant.announce(session)
    val input = Scans.withoutCopy(child)
    val raw = RawColumns.find(input.output, spec)
    val good = Counters.register(session, spec.step, "records_out")
    val bad = Counters.register(session, spec.step, "records_out_malformed")
    val ages = Counters.registerAges(session, spec.step)
    val batchMs = RunningBatch.of(session).fold(0L)(_.timeMs)
    val (how, timeZone) = (spec, conf.sessionLocalTimeZone)
    input.execute().mapPartitionsInternal { records =>
      val decoder = new RecordDecoder(how, raw, timeZone, good, bad)
      records.map { record =>
        if (!record.isNullAt(raw.timestamp)) ages.saw(batchMs - record.getLong(raw.timestamp) / 1000)
        decoder.decode(record)
      }
    }
  }

  override def stringArgs: Iterator[Any] = Iterator(spec.step, spec.topic, output)

  override protected def withNewChildInternal(newChild: SparkPlan): DecodeExec =
    copy(child = newChild)
}
