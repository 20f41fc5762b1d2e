/** Owns sinks that write topics of Pulsar, exactly once by sequence ids or at least once. */
package org.apache.spark.sql.headgate.sinks.pulsar

import org.apache.spark.sql.headgate.brokers.pulsar.PulsarAccess
import org.apache.spark.sql.headgate.sinks.core._

/** Names no class of Pulsar's client, which may be missing. */
final class PulsarSinkKind extends SinkKind {
  override def name: String = "pulsar"

  override def options(spec: SpecNode): SinkOptions = {
    val access = spec.texts("access")
    PulsarOptions(
      topic = spec.text("path"),
      hidden = spec.list("hidden"),
      exactlyOnce = spec.exactlyOnce,
      access = PulsarAccess(access("url"), access - "url"),
      entryRows = spec.number("entry_rows", 1000))
  }

  override def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks =
    new PulsarSinks(job, sinks)
}

/** @param topic with tenant and namespace
  * @param hidden which of order_by, key, value, properties, event_time and deleted come first in the sink's
  *             struct, in order
  * @param entryRows how many rows one entry of the topic has at most, if delivery is exactly once
  */
case class PulsarOptions(
    topic: String,
    hidden: Seq[String],
    exactlyOnce: Boolean,
    access: PulsarAccess,
    entryRows: Int)
  extends SinkOptions {
  hidden.foreach(part => require(PulsarOptions.Parts.contains(part),
    s"a part of a message must be one of ${PulsarOptions.Parts.mkString(", ")}, got '$part'"))

  override def ordered: Boolean = exactlyOnce
}

object PulsarOptions {
  val Parts: Seq[String] = Seq("order_by", "key", "value", "properties", "event_time", RecordParts.Deleted)
}
