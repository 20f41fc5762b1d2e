/** Owns the statements by which rows of MySQL replace each other: from a table of the connection's own. */
package org.apache.spark.sql.headgate.sinks.jdbc

/** The temporary table has the target's types and its key, by which the last row of each key stays there:
  * ON DUPLICATE KEY UPDATE alone cannot delete.
  *
  * @param name of the temporary table
  */
private[headgate] final class MySqlStaging(table: FittingTable, name: String) {
  import RowLoad.{Deleted, Place}

  private val columns = table.columns.map(c => MySqlDialect.quoted(c.name))
  private val key = table.key.map(MySqlDialect.quoted)
  private val others = columns.filterNot(key.contains)
  private val all = columns.mkString(", ")
  private def of(alias: String) = columns.map(c => s"$alias.$c").mkString(", ")

  /** Columns that an outer join brings may be null: a row that deletes has its key only. */
  val create: String =
    s"""CREATE TEMPORARY TABLE $name ($Place BIGINT NOT NULL DEFAULT 0, $Deleted BOOLEAN NOT NULL DEFAULT 0,
       |PRIMARY KEY (${key.mkString(", ")})) ENGINE=InnoDB
       |SELECT ${of("t")} FROM (SELECT 1) one LEFT JOIN ${table.quoted} t ON FALSE LIMIT 0""".stripMargin

  val empty: String = s"DELETE FROM $name"

  val into: String = s"REPLACE INTO $name ($Place, $Deleted, $all) VALUES "

  /** First: a value that must be unique may go from a row that is deleted to one that comes.
    *
    * By the index, so that no task looks at a row that another one has locked.
    */
  def delete(from: Long, until: Long): String =
    s"""DELETE t FROM $name s STRAIGHT_JOIN ${table.quoted} t FORCE INDEX (${MySqlDialect.quoted(table.keyIndex)})
       |ON ${key.map(k => s"t.$k = s.$k").mkString(" AND ")}
       |WHERE s.$Deleted AND ${within(from, until)}""".stripMargin

  def upsert(from: Long, until: Long): String = {
    val change = if (others.isEmpty) Seq(s"${key.head} = s.${key.head}") else others.map(c => s"$c = s.$c")
    s"""INSERT INTO ${table.quoted} ($all) SELECT ${of("s")} FROM $name s
       |WHERE NOT s.$Deleted AND ${within(from, until)}
       |ON DUPLICATE KEY UPDATE ${change.map(c => s"${table.quoted}.$c").mkString(", ")}""".stripMargin
  }

  private def within(from: Long, until: Long) = s"s.$Place >= $from AND s.$Place < $until"

  /** A row for people. */
  def shownAt(held: Held, place: Long): String = {
    val count = table.columns.length
    val values = Sql.query(held.connection, s"SELECT ${of("s")} FROM $name s WHERE s.$Place = $place")(
      r => (1 to count).map(n => Option(r.getString(n)).getOrElse("NULL")))
    values.headOption.fold(s"number $place")(ShownRow.of(table, _))
  }
}
