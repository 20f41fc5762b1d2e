/** Owns looking at a sink's table before its job starts. */
package org.apache.spark.sql.headgate.sinks.jdbc

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.headgate.sinks.core.SpecNode
import org.apache.spark.sql.types.{DataType, StructType}

/** @param rows the columns of the sink's rows, without those that are hidden */
private[headgate] final class TableCheck(options: JdbcOptions, rows: StructType) {
  private val access = Access(options.access, "headgate")
  private val where = s"${access.shown}/${options.table}"

  /** The table; None if it is missing and will be made. */
  def look(): Either[JdbcFailure, Option[FittingTable]] =
    try Right(Connections.use(access) { held =>
      val table = new TargetTable(held, where, options.table, rows, 0, options.key)
      if (options.create && table.found.isEmpty) None else Some(table.fitting())
    })
    catch { case failure: JdbcFailure => Left(failure) }

  def create(): Boolean = Connections.use(access) { held =>
    val table = new TargetTable(held, where, options.table, rows, 0, options.key)
    val missing = table.found.isEmpty
    if (missing) table.create()
    missing
  }
}

private[headgate] object TableCheck {
  def of(specJson: String, rowsJson: String): TableCheck = {
    val spec = new SpecNode(new ObjectMapper().readTree(specJson))
    new TableCheck(new JdbcSinkKind().options(spec).asInstanceOf[JdbcOptions],
      DataType.fromJson(rowsJson).asInstanceOf[StructType])
  }
}
