/** Owns small calls of JDBC. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.sql.{Connection, PreparedStatement, ResultSet}

private[headgate] object Sql {

  def execute(connection: Connection, sql: String): Unit = {
    val statement = connection.createStatement()
    try statement.execute(sql) finally statement.close()
  }

  /** Without the driver's own escapes in braces, which it would look for in all that is written. */
  def executeAsIs(connection: Connection, sql: String): Unit = {
    val statement = connection.createStatement()
    try {
      statement.setEscapeProcessing(false)
      statement.execute(sql)
    } finally statement.close()
  }

  def update(connection: Connection, sql: String, values: Any*): Int =
    prepared(connection, sql, values)(_.executeUpdate())

  /** All rows of a query, each as `read` gives it. */
  def query[T](connection: Connection, sql: String, values: Any*)(read: ResultSet => T): Seq[T] =
    prepared(connection, sql, values) { statement =>
      val rows = statement.executeQuery()
      Iterator.continually(rows).takeWhile(_.next()).map(read).toVector
    }

  private def prepared[T](connection: Connection, sql: String, values: Seq[Any])(
      body: PreparedStatement => T): T = {
    val statement = connection.prepareStatement(sql)
    try {
      values.zipWithIndex.foreach {
        case (value: Int, i) => statement.setInt(i + 1, value)
        case (value: Long, i) => statement.setLong(i + 1, value)
        case (value, i) => statement.setString(i + 1, value.asInstanceOf[String])
      }
      body(statement)
    } finally statement.close()
  }
}
