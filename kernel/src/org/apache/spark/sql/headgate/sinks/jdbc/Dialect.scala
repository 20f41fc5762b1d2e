/** Owns what differs between the databases that sinks write. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.sql.{Connection, SQLException}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.types.DataType

/** A database: how it is reached, what it has, what it holds, and what it says. */
private[headgate] trait Dialect extends Serializable {

  /** What people call it. */
  def product: String

  /** A name exactly as it is, whatever characters it has. */
  def quoted(name: String): String

  /** Those of a name with a schema are quoted one by one. */
  final def quotedTable(name: String): String = name.split("\\.", 2).map(quoted).mkString(".")

  /** A connection with its settings, in a transaction: no statement and no lock is waited for without end. */
  def connect(access: Access): Connection

  /** Ends the transactions of this home's job under other names than `name`: their tasks are nobody's.
    *
    * One of another user is left alone; then whoever needs what it has locked waits for it.
    */
  def fence(connection: Connection, prefix: String, name: String): Unit

  def notes: NoteStatements
  def catalog: Catalog
  def types: ColumnTypes

  /** @param where the table, for people */
  def load(sink: SinkPlan, timeZone: String, where: String): RowLoad

  /** One of [[JdbcFailure]]'s kinds. */
  def kindOf(error: SQLException): String

  def said(error: SQLException): ServerWords
}

private[headgate] object Dialect {

  /** Touches no other dialect, whose driver may be missing. */
  def of(url: String): Dialect = if (url.startsWith("jdbc:postgresql:")) PostgresDialect else MySqlDialect
}

/** @param place what the server says of the place in what it was sent
  * @param detail what it adds
  */
private[headgate] case class ServerWords(text: String, place: Option[String], detail: Option[String])

/** What a database knows of a table; each name may have a schema before a dot. */
private[headgate] trait Catalog {

  /** The name with its schema; None if there is no such table. */
  def found(connection: Connection, table: String): Option[String]

  def columns(connection: Connection, table: String): Seq[TableColumn]

  /** The columns of each index by which rows can replace each other, by its name. */
  def uniqueKeys(connection: Connection, table: String): Map[String, Set[String]]

  /** What else keeps a table from being written, in a sentence.
    *
    * @param written the columns that the rows have
    */
  def problem(connection: Connection, table: String, written: Seq[String], key: Seq[String]): Option[String]

  /** What comes behind the columns in the statement that makes a table. */
  def tableOptions(connection: Connection): String
}

/** Which type of a database holds which type of Spark, and in what form a value gets there. */
private[headgate] trait ColumnTypes {
  /** The type of a column that is made for a Spark type; None if there is none. */
  def made(dataType: DataType, inKey: Boolean): Option[String]

  /** How values get into a column; None if they do not fit there. */
  def form(dataType: DataType, column: TableColumn): Option[Form.Value]
}

/** Gets a task's rows for one sink into its table: gathered as text, then sent by statements. */
private[headgate] trait RowLoad {

  /** Gathers a row.
    *
    * @param place its number in the task
    */
  def add(row: InternalRow, place: Long, deletes: Boolean): Unit

  /** How many bytes are gathered. */
  def size: Int

  /** Sends what is gathered. */
  def send(held: Held): Unit

  def clear(): Unit

  /** Lets the rows that were sent replace others, if that was not done at once.
    *
    * @param deletes whether some of them delete
    */
  def finish(held: Held, rows: Long, deletes: Boolean): Unit

  /** A row for people: its key first, then how it begins. */
  def shown(row: InternalRow): String

  /** The gathered row that the server means by its words about a place. */
  def rowAt(place: String): Option[String]
}

private[headgate] object RowLoad {
  val ChunkBytes: Int = 1 << 20

  /** Columns of the temporary table through which rows replace each other. */
  val Place = "__hg_place"
  val Deleted = "__hg_deleted"
}
