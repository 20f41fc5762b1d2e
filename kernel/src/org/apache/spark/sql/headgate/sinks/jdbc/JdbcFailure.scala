/** Owns what is said when a database fails. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.sql.SQLException

import org.apache.spark.sql.headgate.brokers.core.BrokerFailure

/** @param where the database with the table, if it is known */
class JdbcFailure(kind: String, where: String, text: String, cause: Throwable = null)
  extends BrokerFailure("database", kind, null, where, text, cause)

object JdbcFailure {
  import BrokerFailure.causes

  val Unreachable = "DATABASE_UNREACHABLE"
  val Denied = "DATABASE_DENIED"
  val TableMissing = "TABLE_MISSING"
  val TableUnfit = "TABLE_UNFIT"
  val Constraint = "CONSTRAINT_VIOLATED"
  val Value = "VALUE_REFUSED"
  val Fenced: String = BrokerFailure.Fenced
  val Other = "DATABASE"

  /** What went wrong, by the code that the database gives it.
    *
    * @param row the row that is to blame, by the server's own words about its place; None if unknown
    */
  def of(error: Throwable, where: String, dialect: Dialect, row: String => Option[String] = _ => None): Throwable =
    causes(error).collectFirst { case known: JdbcFailure => known }
      .orElse(causes(error).collectFirst { case sql: SQLException => explained(sql, where, dialect, row) })
      .getOrElse(error)

  private def explained(
      error: SQLException, where: String, dialect: Dialect, row: String => Option[String]): JdbcFailure = {
    val kind = dialect.kindOf(error)
    val server = dialect.said(error)
    val which = if (!ofRow(kind)) None else server.place.flatMap(row)
    val about = which.map(r => s"; the row with $r").orElse(server.detail.map(d => s" ($d)"))
    new JdbcFailure(kind, where, server.text.linesIterator.mkString(" ") + about.getOrElse(""), error)
  }

  /** By the first two characters of SQL's code (SQLSTATE), which all databases share. */
  def kindOfClass(state: String): String = state.take(2) match {
    case "08" => Unreachable
    case "28" => Denied
    case "23" => Constraint
    case "22" => Value
    case _ => Other
  }

  /** Whether a row is to blame. */
  def ofRow(kind: String): Boolean = kind == Constraint || kind == Value
}
