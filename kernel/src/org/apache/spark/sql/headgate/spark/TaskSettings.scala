package org.apache.spark.sql.headgate.spark

import org.apache.spark.sql.internal.SQLConf

/**
 * The settings of a task, made once. `SQLConf.get` makes them anew for every caller in a task, and Spark
 * asks for each column of each key that it encodes for a range scan (`UnsafeRowDataEncoder`, by way of
 * `UnsafeRow.get` and `TypeOps.apply`): that was a sixth of the work of a join.
 */
final class TaskSettings {
  private lazy val conf = SQLConf.get

  /** Runs it with these settings at hand. They are those of the task: nothing but the cost differs. */
  def within[T](body: => T): T = SQLConf.withExistingConf(conf)(body)
}
