/** Owns what MySQL and MariaDB know of a table. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.sql.Connection

private[headgate] object MySqlCatalog extends Catalog {
  private val Named = "table_schema = COALESCE(?, DATABASE()) AND table_name = ?"

  /** Schema and name, as [[Named]] wants them; a schema is a database here. */
  private def parts(table: String): Seq[String] = table.split("\\.", 2) match {
    case Array(schema, name) => Seq(schema, name)
    case _ => Seq(null, table)
  }

  override def found(connection: Connection, table: String): Option[String] = Sql.query(connection,
    s"SELECT table_schema, table_name FROM information_schema.tables WHERE $Named", parts(table): _*)(
    r => s"${r.getString(1)}.${r.getString(2)}").headOption

  override def columns(connection: Connection, table: String): Seq[TableColumn] = Sql.query(connection,
    s"""SELECT column_name, column_type, data_type,
       |  is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_increment%',
       |  extra LIKE '%VIRTUAL GENERATED%' OR extra LIKE '%STORED GENERATED%',
       |  COALESCE(datetime_precision, numeric_scale)
       |FROM information_schema.columns WHERE $Named""".stripMargin, parts(table): _*) { r =>
    TableColumn(r.getString(1), r.getString(2), r.getString(3).toLowerCase(java.util.Locale.ROOT), None,
      r.getBoolean(4), r.getBoolean(5), r.getInt(6))
  }

  override def uniqueKeys(connection: Connection, table: String): Map[String, Set[String]] = {
    val parts = uniqueIndexes(connection, table)
    parts.groupMap(_.index)(p => p).collect {
      case (index, of) if of.forall(_.whole) => index -> of.map(_.column).toSet
    }
  }

  /** A column of a unique index.
    *
    * @param whole whether all of the column counts, and not only how it begins
    * @param counted whether the database counts it up
    */
  private case class IndexPart(index: String, column: String, whole: Boolean, counted: Boolean)

  private def uniqueIndexes(connection: Connection, table: String): Seq[IndexPart] = {
    val counted = Sql.query(connection, s"""SELECT column_name FROM information_schema.columns
      |WHERE $Named AND extra LIKE '%auto_increment%'""".stripMargin, parts(table): _*)(_.getString(1)).toSet
    Sql.query(connection,
      s"""SELECT index_name, column_name, sub_part IS NULL AND column_name IS NOT NULL
         |FROM information_schema.statistics WHERE $Named AND NOT non_unique""".stripMargin, parts(table): _*) { r =>
      IndexPart(r.getString(1), r.getString(2), r.getBoolean(3), counted(r.getString(2)))
    }
  }

  override def problem(
      connection: Connection, table: String, written: Seq[String], key: Seq[String]): Option[String] =
    // those of notes too, if they were made by hand
    Seq(table, Bookkeeping.Batches, Bookkeeping.Outputs).flatMap(engine(connection, _)).headOption
      .orElse(if (key.isEmpty) None else comparison(connection, table, key))
      .orElse(if (key.isEmpty) None else otherKey(connection, table, written, key))

  /** Without transactions nothing is exactly once. */
  private def engine(connection: Connection, table: String): Option[String] = Sql.query(connection,
    s"SELECT COALESCE(engine, table_type) FROM information_schema.tables WHERE $Named", parts(table): _*)(
    _.getString(1)).headOption.filterNot(_.equalsIgnoreCase("InnoDB")).map { other =>
    s"$table must be a table of InnoDB, which has transactions, and is one of $other: " +
      s"ALTER TABLE ${MySqlDialect.quotedTable(table)} ENGINE=InnoDB"
  }

  /** Where 'a' and 'A' are one key to the database, one of the job's rows would replace the other. */
  private def comparison(connection: Connection, table: String, key: Seq[String]): Option[String] =
    Sql.query(connection,
      s"""SELECT column_name, column_type, collation_name FROM information_schema.columns
         |WHERE $Named AND collation_name NOT LIKE '%\\\\_bin'""".stripMargin, parts(table): _*)(
      r => (r.getString(1), r.getString(2), r.getString(3))).find(c => key.contains(c._1)).map {
      case (name, shown, collation) =>
        s"the key column '$name' of $table compares by $collation, for which different texts are one key: " +
          s"ALTER TABLE ${MySqlDialect.quotedTable(table)} MODIFY ${MySqlDialect.quoted(name)} $shown " +
          s"CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL"
    }

  /** ON DUPLICATE KEY UPDATE goes by any unique index: a row would change another one than that of its key. */
  private def otherKey(
      connection: Connection, table: String, written: Seq[String], key: Seq[String]): Option[String] =
    uniqueIndexes(connection, table).groupBy(_.index).find { case (_, of) =>
      val columns = of.map(_.column)
      !key.forall(columns.contains) && !of.exists(p => p.counted && !written.contains(p.column))
    }.map { case (index, _) =>
      s"$table has another unique index, $index, by which MySQL would also let rows replace each other: " +
        s"DROP INDEX ${MySqlDialect.quoted(index)} ON ${MySqlDialect.quotedTable(table)}"
    }

  /** Texts differ if any of their characters do, also a blank at the end where the server can do so. */
  override def tableOptions(connection: Connection): String = {
    val known = Sql.query(connection, "SELECT collation_name FROM information_schema.collations " +
      "WHERE collation_name IN ('utf8mb4_0900_bin', 'utf8mb4_nopad_bin')")(_.getString(1)).headOption
    s" ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=${known.getOrElse("utf8mb4_bin")}"
  }
}
