/** Owns the sinks of a job: the option `spec`, and the columns that each sink gets. */
package org.apache.spark.sql.headgate.sinks.core

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.headgate.commit.{DiskFiles, Owner}
import org.apache.spark.sql.types.StructType

/** One sink of a job.
  *
  * @param number its place among the job's sinks
  * @param options as its kind has read them
  */
case class SinkSpec(number: Int, name: String, kind: SinkKind, options: SinkOptions)

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
  def writerId(sink: SinkSpec): String =
    Seq(job, runKey, sink.name).map(DiskFiles.fileName).mkString(".")
}

object SinkSpec {
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
    val job = new SpecNode(root)
    JobSpec(
      job.text("job"),
      job.text("run"),
      job.text("uid"),
      job.text("journal"),
      root.get("sinks").elements.asScala.map(new SpecNode(_)).zipWithIndex
        .map { case (node, number) => sink(node, number) }.toSeq,
      Owner(job.text("owner"), job.text("home")),
      root.path("out_until").asLong(-1L))
  }

  private def sink(node: SpecNode, number: Int): SinkSpec = {
    val name = node.text("name")
    val kind = SinkKinds.of(node.text("kind"), name)
    SinkSpec(number, name, kind, kind.options(node))
  }

  /** The struct of each sink in the rows that come. */
  def structs(spec: JobSpec, schema: StructType): Seq[StructType] = {
    val rows = schema.fields.tail.filterNot(_.name == SinkSpec.OrderColumn)
    require(
      rows.length == spec.sinks.length && schema.head.name == SinkSpec.SinkColumn,
      s"columns for ${spec.sinks.length} sinks expected, got ${schema.fieldNames.mkString(", ")}")
    rows.map(_.dataType.asInstanceOf[StructType]).toSeq
  }
}
