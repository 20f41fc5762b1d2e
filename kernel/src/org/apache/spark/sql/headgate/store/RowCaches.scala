package org.apache.spark.sql.headgate.store

import java.util.concurrent.{ConcurrentHashMap, Executors, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.headgate.spark.{OpenStores, StoreId}

/**
 * The caches of this executor, kept between batches.
 *
 * A cache stands for one version of one store and, since two attempts of a task commit the same
 * version with different bytes, for that version's unique checkpoint id. It is taken out for use
 * and given back only by a task that succeeded; whoever finds another version starts empty.
 * All caches share one number of bytes; those of stores that Spark has unloaded are dropped.
 */
object RowCaches {
  private case class Kept(version: Long, checkpointId: Option[String], cache: RowCache)
  private val kept = new ConcurrentHashMap[StoreId, Kept]()
  private val inUse = ConcurrentHashMap.newKeySet[RowCache]()

  private lazy val sweeper = {
    val e = Executors.newSingleThreadScheduledExecutor { r =>
      val t = new Thread(r, "headgate-cache-sweeper"); t.setDaemon(true); t
    }
    e.scheduleWithFixedDelay(() => sweep(), 10, 10, TimeUnit.SECONDS)
    e
  }

  /** Drops the caches of stores that are no longer loaded here: stopped or moved queries. */
  def sweep(): Unit = kept.keySet.asScala.toSeq.foreach(id => if (!OpenStores.isLoaded(id)) kept.remove(id))

  def count: Int = kept.size
  def bytes: Long = (kept.values.asScala.map(_.cache) ++ inUse.asScala).map(_.bytes).sum

  /** The cache of the task's store at that version, or an empty one. */
  def take(id: StoreId, version: Long, checkpointId: Option[String],
      budget: Long): RowCache = {
    sweeper
    // an earlier run of the same query left its cache under another run id
    kept.keySet.asScala.toSeq.foreach { k =>
      if (k.storeId == id.storeId && k.queryRunId != id.queryRunId) kept.remove(k)
    }
    val found = kept.remove(id)
    val task = TaskContext.get()
    val cache =
      if (found != null && found.version == version && found.checkpointId == checkpointId &&
          task.attemptNumber() == 0) found.cache
      else new RowCache(RowCache.chunkBytes(budget), beginsEmpty = version == 0, hasRoom(budget))
    inUse.add(cache)
    task.addTaskCompletionListener[Unit](_ => inUse.remove(cache))
    cache.shrinkTo(math.max(share(budget), budget - (bytes - cache.bytes)))
    cache
  }

  /** What others leave is anyone's; an equal share is always one's own, theirs shrink to it later. */
  private def hasRoom(budget: Long)(cache: RowCache, wanted: Long): Boolean =
    bytes + wanted <= budget || cache.bytes + wanted <= share(budget)

  private def share(budget: Long): Long = budget / math.max(1L, kept.size + inUse.size)

  /** Keeps the cache for the next batch, once the task has succeeded as a whole. */
  def giveBackOnSuccess(id: StoreId, version: Long, checkpointId: Option[String],
      cache: RowCache): Unit = {
    val task = TaskContext.get()
    task.addTaskCompletionListener[Unit] { t =>
      if (!t.isFailed() && !t.isInterrupted()) kept.put(id, Kept(version, checkpointId, cache))
    }
  }
}
