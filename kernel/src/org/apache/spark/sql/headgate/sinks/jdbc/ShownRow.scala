/** Owns how a row is shown to people. */
package org.apache.spark.sql.headgate.sinks.jdbc

private[headgate] object ShownRow {
  private val MostOfValue = 40
  private val MostOfRow = 130

  /** The key first, then how the row begins.
    *
    * @param values as text, of each column
    */
  def of(table: FittingTable, values: Seq[String]): String = {
    val (key, others) = table.columns.map(_.name).zip(values).partition(v => table.key.contains(v._1))
    val all = (key ++ others).map { case (name, value) => s"$name=${value.take(MostOfValue)}" }.mkString(", ")
    if (all.length <= MostOfRow) all else all.take(MostOfRow - 3) + "..."
  }
}
