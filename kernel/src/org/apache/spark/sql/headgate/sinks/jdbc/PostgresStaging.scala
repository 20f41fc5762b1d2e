/** Owns the statements by which rows of PostgreSQL replace each other: from a table of the connection's own. */
package org.apache.spark.sql.headgate.sinks.jdbc

/** Rows are copied into a temporary table with their places; the last of each key counts.
  *
  * The table has the target's types and none of its constraints: a row that deletes has its key only.
  *
  * @param name of the temporary table
  */
private[headgate] final class PostgresStaging(table: FittingTable, name: String) {
  import RowLoad.{Deleted, Place}

  private val columns = table.columns.map(c => PostgresDialect.quoted(c.name))
  private val key = table.key.map(PostgresDialect.quoted)
  private val others = columns.filterNot(key.contains)
  private val all = columns.mkString(", ")
  private val keys = key.mkString(", ")
  private val last = s"(SELECT DISTINCT ON ($keys) * FROM $name ORDER BY $keys, ${Place} DESC) s"

  val create: String =
    s"""CREATE TEMPORARY TABLE IF NOT EXISTS $name ON COMMIT DELETE ROWS AS
       |SELECT NULL::bigint AS ${Place}, NULL::boolean AS ${Deleted}, $all
       |FROM ${table.quoted} WITH NO DATA""".stripMargin

  val copy: String = s"COPY $name (${Place}, ${Deleted}, $all) FROM STDIN"

  /** First: a value that must be unique may go from a row that is deleted to one that comes. */
  val delete: String =
    s"""DELETE FROM ${table.quoted} t USING $last WHERE s.${Deleted}
       |AND ${key.map(k => s"t.$k = s.$k").mkString(" AND ")}""".stripMargin

  val upsert: String = {
    val change = if (others.isEmpty) "NOTHING"
      else s"UPDATE SET ${others.map(c => s"$c = EXCLUDED.$c").mkString(", ")}"
    s"""INSERT INTO ${table.quoted} ($all) SELECT $all FROM $last WHERE NOT s.${Deleted}
       |ON CONFLICT ($keys) DO $change""".stripMargin
  }
}
