/** Owns what Python asks a database about the table of a sink. */
package org.apache.spark.sql.headgate.api

import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.sinks.jdbc.TableCheck

object JdbcApi {

  /** JSON: `columns`, how many are written, or `create` if the table is to be made; or `error` and `message`.
    *
    * @param specJson a sink's part of the spec, as JSON
    * @param rowsJson the columns of its rows, as JSON of Spark's
    */
  def check(specJson: String, rowsJson: String): String = {
    val json = JsonNodeFactory.instance.objectNode()
    TableCheck.of(specJson, rowsJson).look() match {
      case Left(failure) => json.put("error", failure.kind).put("message", failure.text)
      case Right(Some(table)) => json.put("columns", table.columns.length)
      case Right(None) => json.put("create", true)
    }
    json.toString
  }

  /** Makes the table if it is missing; whether it did. */
  def create(specJson: String, rowsJson: String): Boolean = TableCheck.of(specJson, rowsJson).create()
}
