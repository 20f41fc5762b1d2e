/** Owns what is known of a column, and the forms in which values get there. */
package org.apache.spark.sql.headgate.sinks.jdbc

/** How a value is written: by its own type, or as JSON. */
private[headgate] object Form extends Enumeration {
  val Plain, Json = Value
}

/** A column of a table.
  *
  * @param shown its type as people write it, `numeric(10,2)` for instance
  * @param base the name of the type in the catalog, of a domain that of what it is made of
  * @param element of an array, the name of its elements' type
  * @param needed whether a row without it is refused
  * @param generated whether only the database gives it a value
  * @param digits how many it keeps behind the point: of a decimal number, or of a second
  */
private[headgate] case class TableColumn(
    name: String,
    shown: String,
    base: String,
    element: Option[String],
    needed: Boolean,
    generated: Boolean,
    digits: Int = TableColumn.Micros)

private[headgate] object TableColumn {
  val Micros = 6
}
