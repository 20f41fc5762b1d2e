/** Owns the state of steps as Python reads, rewrites and verifies it. */
package org.apache.spark.sql.headgate.api

import java.util.{List => JList, Map => JMap}

import org.apache.spark.sql.{DataFrame => ApiFrame, SparkSession => ApiSession}
import org.apache.spark.sql.headgate.commit.VerifyFiles
import org.apache.spark.sql.headgate.spark.Frames
import org.apache.spark.sql.headgate.store.{KeepsState, OperatorId, RewriteState, Rewritten, StateRows}

object StateApi {
  def operatorId(step: String): Long = OperatorId.of(step)

  /** JSON: step -> the layouts of its stores. */
  def layouts(df: ApiFrame): String = KeepsState.layouts(Frames.plan(df))

  /** All rows of one store at a version; `partitions` null: of all partitions. */
  def rows(session: ApiSession, folder: String, operatorId: Long, layout: String, version: Long,
      ids: JList[String], partitions: JList[Integer]): ApiFrame =
    StateRows.rows(session, folder, operatorId, layout, version, ids, partitions)

  /** The rows of one key: of the row in `key`, whose columns are the store's partition_by columns. */
  def get(session: ApiSession, folder: String, operatorId: Long, layout: String, version: Long,
      ids: JList[String], key: ApiFrame): ApiFrame =
    StateRows.get(session, folder, operatorId, layout, version, ids, key)

  /** See [[RewriteState.run]]. */
  def rewrite(session: ApiSession, source: String, sourceVersion: Long, sourceIds: JList[JList[String]],
      operatorId: Long, step: String, oldLayouts: String, newLayouts: String, target: String,
      targetVersion: Long, partitions: Int, job: ApiFrame, drops: Boolean): Rewritten =
    RewriteState.run(session, source, sourceVersion, sourceIds, operatorId, step, oldLayouts,
      newLayouts, target, targetVersion, partitions, job, drops)

  /** By path, what is wrong with it; paths with which nothing is wrong are left out. */
  def verify(session: ApiSession, paths: JList[String]): JMap[String, String] =
    VerifyFiles.run(session, paths)
}
