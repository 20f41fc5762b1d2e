/** Owns sinks that write topics of Kafka, exactly once by transactions or at least once. */
package org.apache.spark.sql.headgate.sinks.kafka

import org.apache.spark.sql.headgate.sinks.core._

/** Names no class of Kafka's client, which may be missing. */
final class KafkaSinkKind extends SinkKind {
  override def name: String = "kafka"

  override def options(spec: SpecNode): SinkOptions = KafkaOptions(
    topic = spec.text("path"),
    hidden = spec.list("hidden"),
    exactlyOnce = spec.exactlyOnce,
    transactionTimeoutMs = spec.number("transaction_timeout_ms", 600000),
    markerTopic = spec.text("marker_topic", "headgate-markers"),
    client = spec.texts("client"),
    schema = SinkSchema.of(spec))

  override def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks =
    new KafkaSinks(job, sinks)
}

/** @param hidden which of key, value, headers, timestamp and deleted come first in the sink's struct, in order
  * @param client properties of the Kafka client, as the user gave them
  * @param schema which schema of a registry its values have, if they have one
  */
case class KafkaOptions(
    topic: String,
    hidden: Seq[String],
    exactlyOnce: Boolean,
    transactionTimeoutMs: Int,
    markerTopic: String,
    client: Map[String, String],
    schema: Option[SinkSchema] = None)
  extends SinkOptions {
  hidden.foreach(part => require(KafkaOptions.Parts.contains(part),
    s"a part of a record must be one of ${KafkaOptions.Parts.mkString(", ")}, got '$part'"))
}

object KafkaOptions {
  val Parts: Seq[String] = Seq("key", "value", "headers", "timestamp", RecordParts.Deleted)
}
