/** Owns Spark's settings that a query gets because of where it writes and how often. */
package org.apache.spark.sql.headgate.spark

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.ProcessingTimeTrigger
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.streaming.Trigger

private[spark] object QuerySettings {
  // with Spark's default, which is our least, each store makes one a second if there are ten batches
  private val SnapshotEveryMs = 10000L
  private val FewestDeltas = 10L
  private val MostDeltas = 100L

  /** Starts a query with them; what a user has set stays. */
  def during[T](session: Session, folder: String, trigger: Trigger)(start: => T): T = {
    val conf = session.sessionState.conf
    val ours = (checksums(session, folder) ++ snapshots(trigger) ++ functions).filterNot { case (key, _) => conf.contains(key) }
    ours.foreach { case (key, value) => conf.setConfString(key, value) }
    // a query has settings of its own, copied when it starts
    try start finally ours.keys.foreach(conf.unsetConf(_))
  }

  /**
   * On a file system of this machine each file has Hadoop's checksums beside it (LocalFile), which are
   * compared whenever it is read. Spark's own would be two more files for each one of a batch.
   */
  private def checksums(session: Session, folder: String): Map[String, String] =
    if (!CheckpointFiles.plain(new Path(folder), Sessions.hadoop(session)).isLocal) Map.empty
    else Map(SQLConf.STREAMING_CHECKPOINT_FILE_CHECKSUM_ENABLED.key -> "false")

  /**
   * Spark's own operators make a function of each batch's plan, and look through the class that it is
   * of for mistakes of users, from its jar. Objects they would make instead are not looked through.
   */
  private val functions = Map(SQLConf.USE_PARTITION_EVALUATOR.key -> "true")

  /**
   * After so many changelogs a store makes a snapshot of itself, while its batch waits; a restart reads
   * the changelogs since the last one. With short intervals those are small.
   */
  private def snapshots(trigger: Trigger): Map[String, String] = {
    val interval = trigger match {
      case ProcessingTimeTrigger(ms) => math.max(ms, 1L)
      case _ => SnapshotEveryMs
    }
    val deltas = math.min(math.max(SnapshotEveryMs / interval, FewestDeltas), MostDeltas)
    Map(SQLConf.STATE_STORE_MIN_DELTAS_FOR_SNAPSHOT.key -> deltas.toString)
  }
}
