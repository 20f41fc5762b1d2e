/** Owns merging a batch's rows into a Delta table by their key. */
package org.apache.spark.sql.headgate.sinks.delta

import io.delta.tables.DeltaTable

import org.apache.spark.sql.{Column, DataFrame}
import org.apache.spark.sql.delta.PreprocessTableWithDVsStrategy
import org.apache.spark.sql.functions.{col, lit, max_by, monotonically_increasing_id, not, struct}
import org.apache.spark.sql.headgate.spark.{Session, Sessions}

/** @param columns all columns of the rows; the first may say whether a row deletes */
private final class DeltaMerge(options: DeltaSinkOptions, columns: Seq[String]) {
  private val changes = columns.contains(DeltaSchemas.Deleted)
  private val data = columns.filter(_ != DeltaSchemas.Deleted)

  /** @param rows in their order, each partition behind the one before it
    * @param files in so many tasks new rows are written, if Delta does not shuffle them
    */
  def run(rows: DataFrame, files: Int): Unit = {
    val set = data.map(name => "t." + DeltaSchemas.quoted(name) -> of("s", name)).toMap
    val deletes = if (changes) of("s", DeltaSchemas.Deleted) else lit(false)
    val table = DeltaTable.forPath(rows.sparkSession, options.path)
    val merged = table.as("t").merge(newest(rows).coalesce(files).as("s"), same)
    val deleted = if (changes) merged.whenMatched(deletes).delete() else merged
    deleted.whenMatched().update(set).whenNotMatched(not(deletes)).insert(set).execute()
  }

  /** The last row of each key: of changes there is only one. */
  private def newest(rows: DataFrame): DataFrame =
    if (changes) rows
    else {
      val last = max_by(struct(columns.map(name => col(DeltaSchemas.quoted(name))): _*), col(DeltaMerge.Place))
      rows.withColumn(DeltaMerge.Place, monotonically_increasing_id())
        .groupBy(options.key.map(name => col(DeltaSchemas.quoted(name))): _*).agg(last.as("last"))
        .select(columns.map(name => col("last." + DeltaSchemas.quoted(name))): _*)
    }

  /** Also keys that are null are the same. */
  private def same: Column = options.key.map(name => of("t", name) <=> of("s", name)).reduce(_ && _)

  private def of(side: String, name: String): Column = col(s"$side.${DeltaSchemas.quoted(name)}")
}

private[sql] object DeltaMerge {
  private val Place = "__hg_place"

  /** Lets a session read tables with deletion vectors without Delta's own session extension. */
  def prepare(session: Session): Unit = {
    Sessions.addStrategy(session, PreprocessTableWithDVsStrategy(session))
    // the rows are files: they are the same whenever they are read
    session.conf.set("spark.databricks.delta.merge.materializeSource", "none")
  }
}
