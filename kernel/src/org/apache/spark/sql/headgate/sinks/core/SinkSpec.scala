/** Owns what a job's sinks are told: the option `spec`, and the columns that each sink gets. */
package org.apache.spark.sql.headgate.sinks.core

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import org.apache.spark.sql.headgate.brokers.pulsar.PulsarAccess
import org.apache.spark.sql.headgate.commit.Owner
import org.apache.spark.sql.headgate.sinks.kafka.KafkaOptions
import org.apache.spark.sql.headgate.sinks.pulsar.PulsarOptions
import org.apache.spark.sql.types.StructType

/** One sink of a job.
  *
  * @param kind log, files, console, kafka or pulsar
  * @param keyed whether the first column is the record's key and no part of its value (log)
  * @param partitions of a topic that the sink has to create (log)
  * @param format parquet, json or csv (files)
  * @param options of the format (files)
  * @param kafka what only a Kafka sink has; its path is the topic
  * @param pulsar what only a Pulsar sink has; its path is the topic
  */
case class SinkSpec(
    name: String,
    kind: String,
    path: String,
    keyed: Boolean,
    partitions: Int,
    format: String,
    options: Map[String, String],
    kafka: Option[KafkaOptions] = None,
    pulsar: Option[PulsarOptions] = None) {
  require(SinkSpec.Kinds.contains(kind),
    s"sink '$name': kind log, files, console, kafka or pulsar, not '$kind'")

  /** Whether rows are numbered by their place in their task, and so must come in one order. */
  def ordered: Boolean = pulsar.exists(_.exactlyOnce)
}

/** All sinks of a job, in the order of the columns r0, r1, ...
  *
  * @param owner which job of which home writes
  * @param outUntil batches up to it count as out, whatever the markers say; -1 if there are none
  */
case class JobSpec(
    job: String,
    run: String,
    uid: String,
    journal: String,
    sinks: Seq[SinkSpec],
    owner: Owner = Owner("", ""),
    outUntil: Long = -1L) {

  /** The run among all runs that ever were: a home that is deleted begins with r1 again, and its
    * batches must not be taken for those that are out already.
    */
  def runKey: String = if (uid.isEmpty) run else s"$run-$uid"

  /** Under which name a sink's batches are marked as committed: another run is another writer. */
  def writerId(sink: SinkSpec): String = Seq(job, runKey, sink.name).map(JobSpec.fileName).mkString(".")
}

object SinkSpec {
  val Kinds: Set[String] = Set("log", "files", "console", "kafka", "pulsar")
  val SinkColumn = "__hg_sink"

  /** The last column, if it is there: the place of a row among those of its task that are not sorted
    * by their contents.
    */
  val OrderColumn = "__hg_order"
}

object JobSpec {
  private val mapper = new ObjectMapper()

  def parse(json: String): JobSpec = {
    require(json != null, "the sink needs the option 'spec'")
    val root = mapper.readTree(json)
    JobSpec(
      text(root, "job", ""),
      text(root, "run", ""),
      text(root, "uid", ""),
      text(root, "journal", ""),
      root.get("sinks").elements.asScala.map(sink).toSeq,
      Owner(text(root, "owner", ""), text(root, "home", "")),
      root.path("out_until").asLong(-1L))
  }

  /** The struct of each sink in the rows that come. */
  def structs(spec: JobSpec, schema: StructType): Seq[StructType] = {
    val rows = schema.fields.tail.filterNot(_.name == SinkSpec.OrderColumn)
    require(
      rows.length == spec.sinks.length && schema.head.name == SinkSpec.SinkColumn,
      s"columns for ${spec.sinks.length} sinks expected, got ${schema.fieldNames.mkString(", ")}")
    rows.map(_.dataType.asInstanceOf[StructType]).toSeq
  }

  private def sink(node: JsonNode): SinkSpec = {
    SinkSpec(
      name = text(node, "name", ""),
      kind = text(node, "kind", ""),
      path = text(node, "path", ""),
      keyed = text(node, "key", "").nonEmpty,
      partitions = Option(node.get("partitions")).filter(_.isNumber).map(_.asInt).getOrElse(1),
      format = text(node, "format", "parquet"),
      options = texts(node, "options"),
      kafka = if (text(node, "kind", "") == "kafka") Some(kafka(node)) else None,
      pulsar = if (text(node, "kind", "") == "pulsar") Some(pulsar(node)) else None)
  }

  private def pulsar(node: JsonNode): PulsarOptions = {
    val access = texts(node, "access")
    PulsarOptions(
      lead = lead(node),
      exactlyOnce = exactlyOnce(node),
      access = PulsarAccess(access("url"), access - "url"),
      entryRows = node.path("entry_rows").asInt(1000))
  }

  private def lead(node: JsonNode): Seq[String] =
    Option(node.get("lead")).toSeq.flatMap(_.elements.asScala.map(_.asText))

  private def exactlyOnce(node: JsonNode): Boolean = text(node, "delivery", "exactly_once") match {
    case "exactly_once" => true
    case "at_least_once" => false
    case other =>
      throw new IllegalArgumentException(s"delivery exactly_once or at_least_once, not '$other'")
  }

  private def kafka(node: JsonNode): KafkaOptions = KafkaOptions(
    lead = lead(node),
    exactlyOnce = exactlyOnce(node),
    transactionTimeoutMs = node.path("transaction_timeout_ms").asInt(600000),
    markerTopic = text(node, "marker_topic", "headgate-markers"),
    client = texts(node, "client"))

  private def texts(node: JsonNode, name: String): Map[String, String] =
    Option(node.get(name)).filter(_.isObject)
      .map(_.properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap)
      .getOrElse(Map.empty[String, String])

  private def text(node: JsonNode, name: String, otherwise: String): String =
    Option(node.get(name)).filterNot(_.isNull).map(_.asText).getOrElse(otherwise)

  /** A name as part of a file name: what a file system may not like is written as %XX. */
  private[headgate] def fileName(name: String): String =
    name.getBytes("UTF-8").map { b =>
      val c = (b & 0xff).toChar
      if (c.isLetterOrDigit && c < 128 || c == '_' || c == '-') c.toString else f"%%${b & 0xff}%02X"
    }.mkString
}
