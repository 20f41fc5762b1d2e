/** Owns what is said when a database fails. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.sql.SQLException

import org.postgresql.util.{PSQLException, ServerErrorMessage}

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

  /** What went wrong, by the code that SQL gives it (SQLSTATE).
    *
    * @param row the row that is to blame, by the server's own words about its place; None if unknown
    */
  def of(error: Throwable, where: String, row: String => Option[String] = _ => None): Throwable =
    causes(error).collectFirst { case known: JdbcFailure => known }
      .orElse(causes(error).collectFirst { case sql: SQLException => explained(sql, where, row) })
      .getOrElse(error)

  private def explained(
      error: SQLException, where: String, row: String => Option[String]): JdbcFailure = {
    val kind = kindOf(state(error))
    val server = serverOf(error)
    val said = server.flatMap(s => Option(s.getMessage))
      .getOrElse(BrokerFailure.said(error)).linesIterator.mkString(" ")
    val which = if (kind != Constraint && kind != Value) None
      else server.flatMap(s => Option(s.getWhere)).flatMap(row)
    val about = which.map(r => s"; the row with $r")
      .orElse(server.flatMap(s => Option(s.getDetail)).map(d => s" ($d)"))
    new JdbcFailure(kind, where, said + about.getOrElse(""), error)
  }

  private def serverOf(error: SQLException): Option[ServerErrorMessage] = causes(error).collectFirst {
    case e: PSQLException if e.getServerErrorMessage != null => e.getServerErrorMessage
  }

  private def state(error: SQLException): String = Option(error.getSQLState).getOrElse("")

  // https://www.postgresql.org/docs/current/errcodes-appendix.html
  private def kindOf(state: String): String = state match {
    case "57P01" | "57P02" | "57P03" => Unreachable // it is shutting down, or starting
    case "53300" => Other // too many connections: one may become free
    case "42501" | "3D000" | "08004" => Denied // 08004: no password was given
    case "42P01" | "3F000" => TableMissing
    case "42703" | "42804" | "42P10" | "428C9" => TableUnfit
    case _ => state.take(2) match {
      case "08" => Unreachable
      case "28" => Denied
      case "23" => Constraint
      case "22" => Value
      case _ => Other
    }
  }
}
