/** Owns which tables of a job share a transaction, and what tasks have to know of them. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import org.apache.spark.sql.headgate.commit.{OutputTakenException, Owner}
import org.apache.spark.sql.headgate.sinks.core.{JobSpec, SinkSpec}
import org.apache.spark.sql.types.StructType

/** Sinks of a job with the same address and options: a task writes them in one transaction.
  *
  * @param start distinguishes this start of the query from others; empty for the driver's own work
  */
private[headgate] case class JdbcGroup(job: JobSpec, options: Map[String, String], start: String) {

  /** Databases cut names at 63 bytes, so the job is in it as a number. */
  val prefix: String = {
    val text = s"${job.owner.id}/${job.job}"
    val hash = MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))
    s"headgate.${hash.take(6).map(b => f"${b & 0xff}%02x").mkString}."
  }

  val access: Access = Access(options, prefix.stripSuffix(".") + (if (start.isEmpty) "" else s".$start"))

  def where(sink: JdbcOptions): String = s"${access.shown}/${sink.table}"

  def taken(sink: SinkPlan, by: Owner): OutputTakenException =
    new OutputTakenException(sink.name, where(sink.options), by)
}

/** What a task has to know of one sink.
  *
  * @param struct its rows, with what is not written first
  */
private[headgate] case class SinkPlan(
    number: Int, name: String, options: JdbcOptions, struct: StructType, table: FittingTable)

private[headgate] case class GroupPlan(group: JdbcGroup, sinks: Seq[SinkPlan])

private[headgate] object JdbcGroup {

  /** The groups of a job with their sinks, in the order of their first ones. */
  def of(job: JobSpec, sinks: Seq[SinkSpec], start: String): Seq[(JdbcGroup, Seq[(SinkSpec, JdbcOptions)])] = {
    val known = sinks.map(s => s -> s.options.asInstanceOf[JdbcOptions])
    known.map(_._2.access).distinct.map { access =>
      // kinds of sinks do not travel to executors, and tasks need none of it
      JdbcGroup(job.copy(sinks = Nil), access, start) -> known.filter(_._2.access == access)
    }
  }
}
