/** Owns sinks that write tables of databases, exactly once by a transaction a task. */
package org.apache.spark.sql.headgate.sinks.jdbc

import org.apache.spark.sql.headgate.sinks.core._

/** Names no class of the driver, which may be missing. */
final class JdbcSinkKind extends SinkKind {
  override def name: String = "jdbc"

  override def options(spec: SpecNode): SinkOptions = JdbcOptions(
    table = spec.text("path"),
    hidden = spec.list("hidden"),
    key = spec.list("key_columns"),
    create = spec.text("create") == "true",
    access = spec.texts("access"))

  override def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks =
    new JdbcSinks(job, sinks)
}

/** @param table its name as the user gave it, perhaps with a schema before a dot
  * @param hidden which of key and deleted come first in the sink's struct, in order
  * @param key the columns by which rows replace each other; none if rows are appended
  * @param create whether a table that is missing is made
  * @param access `url`, and the driver's properties as the user gave them
  */
case class JdbcOptions(
    table: String,
    hidden: Seq[String],
    key: Seq[String],
    create: Boolean,
    access: Map[String, String])
  extends SinkOptions {
  hidden.foreach(part => require(JdbcOptions.Parts.contains(part),
    s"a part of a row must be one of ${JdbcOptions.Parts.mkString(", ")}, got '$part'"))
}

object JdbcOptions {
  val Parts: Seq[String] = Seq("key", RecordParts.Deleted)
}
