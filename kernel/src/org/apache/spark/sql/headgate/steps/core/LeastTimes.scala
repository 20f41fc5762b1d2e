package org.apache.spark.sql.headgate.steps.core

import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.headgate.spark.{OpenStores, StoreId}

/**
 * What tasks of this executor know of their times since the last batch: none is less than this.
 *
 * Times are deleted where they begin. RocksDB passes over all that was deleted since it last compacted,
 * and a scan that begins behind it need not. As a row cache, this stands for one version of a store and
 * that version's unique id: who finds another one knows nothing.
 */
object LeastTimes {
  private case class Known(version: Long, checkpointId: Option[String], least: Long)
  private val kept = new ConcurrentHashMap[StoreId, Known]()

  /** Of the task's store with that number; the least there can be if nothing is known. */
  def of(opened: OpenStores, number: Int): Long = {
    kept.keySet.asScala.toSeq.foreach(id => if (!OpenStores.isLoaded(id)) kept.remove(id))
    val found = kept.remove(opened.ids(number))
    if (found != null && found.version == opened.version &&
        found.checkpointId == opened.loadedIds.map(_(number))) found.least
    else Long.MinValue
  }

  /** To be called when the store is committed; it is kept if the task succeeds as a whole. */
  def keepOnSuccess(opened: OpenStores, number: Int, least: Long): Unit = {
    val id = opened.committedId(number)
    TaskContext.get().addTaskCompletionListener[Unit] { task =>
      if (!task.isFailed() && !task.isInterrupted())
        kept.put(opened.ids(number), Known(opened.version + 1, id, least))
    }
  }
}
