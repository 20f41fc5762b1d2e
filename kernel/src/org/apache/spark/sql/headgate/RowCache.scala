package org.apache.spark.sql.headgate

import java.util.concurrent.{ConcurrentHashMap, Executors, TimeUnit}
import java.util.concurrent.atomic.AtomicLong

import scala.jdk.CollectionConverters._

import org.apache.spark.TaskContext
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.{StateStore, StateStoreProviderId}

/**
 * Decoded state rows of one store partition, by key: two slots a hash, the newer one first.
 * Grows up to a number of bytes and then replaces; `Absent` stands for a key that is not there.
 */
final class RowCache(private var limit: Long) {
  private var mask = RowCache.FirstSlots - 1
  private var keys = new Array[UnsafeRow](mask + 1)
  private var values = new Array[UnsafeRow](mask + 1)
  private var entries = 0
  private var held = 0L

  def bytes: Long = held + (mask + 1L) * RowCache.SlotBytes

  private def slot(key: UnsafeRow): Int = { val h = key.hashCode; (h ^ (h >>> 16)) & mask }

  /** The row, `RowCache.Absent`, or null when the cache does not know. */
  def get(key: UnsafeRow): UnsafeRow = {
    val i = slot(key)
    val first = keys(i)
    if (first != null && first.equals(key)) values(i)
    else {
      val second = keys(i ^ 1)
      if (second != null && second.equals(key)) values(i ^ 1) else null
    }
  }

  /** `value` is kept as it is: give a row that nobody writes to any more. The key is copied. */
  def put(key: UnsafeRow, value: UnsafeRow): Unit = {
    val i = slot(key)
    if (keys(i) != null && keys(i).equals(key)) replace(i, value)
    else if (keys(i ^ 1) != null && keys(i ^ 1).equals(key)) replace(i ^ 1, value)
    else {
      if (keys(i) != null) {
        if (keys(i ^ 1) != null) drop(i ^ 1)
        keys(i ^ 1) = keys(i); values(i ^ 1) = values(i)
      }
      keys(i) = key.copy(); values(i) = value
      held += size(keys(i), value)
      entries += 1
      if (entries > (mask + 1) / 2) grow()
      else if (bytes > limit) clear()
    }
  }

  private def replace(i: Int, value: UnsafeRow): Unit = {
    held += value.getSizeInBytes - values(i).getSizeInBytes
    values(i) = value
    if (bytes > limit) clear()
  }

  private def drop(i: Int): Unit = { held -= size(keys(i), values(i)); entries -= 1 }

  private def size(key: UnsafeRow, value: UnsafeRow): Long =
    RowCache.EntryBytes + key.getSizeInBytes + value.getSizeInBytes

  private def grow(): Unit =
    // twice the slots will hold about twice the bytes: only if that fits
    if (2 * bytes <= limit && mask < (1 << 28)) {
      val (oldKeys, oldValues) = (keys, values)
      mask = 2 * (mask + 1) - 1
      keys = new Array[UnsafeRow](mask + 1)
      values = new Array[UnsafeRow](mask + 1)
      entries = 0; held = 0
      var i = 0
      while (i < oldKeys.length) {
        if (oldKeys(i) != null) {
          val s = slot(oldKeys(i))
          val free = if (keys(s) == null) s else if (keys(s ^ 1) == null) s ^ 1 else -1
          if (free >= 0) {
            keys(free) = oldKeys(i); values(free) = oldValues(i)
            held += size(oldKeys(i), oldValues(i)); entries += 1
          }
        }
        i += 1
      }
    } else if (bytes > limit) clear()

  def clear(): Unit = {
    mask = RowCache.FirstSlots - 1
    keys = new Array[UnsafeRow](mask + 1)
    values = new Array[UnsafeRow](mask + 1)
    entries = 0; held = 0
  }

  def limitTo(bytesAtMost: Long): Unit = { limit = bytesAtMost; if (bytes > limit) clear() }
}

object RowCache {
  private val FirstSlots = 1024
  private val SlotBytes = 16L
  /** Two row objects and two byte arrays, beside what they hold. */
  private val EntryBytes = 128L
  val Absent: UnsafeRow = new UnsafeRow(0)

  /** The store hands out one reused row over fresh bytes (RocksDBStateEncoder): keep the bytes. */
  def keepable(row: UnsafeRow): UnsafeRow = {
    val kept = new UnsafeRow(row.numFields)
    kept.pointTo(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes)
    kept
  }
}

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
  private val kept = new ConcurrentHashMap[StateStoreProviderId, Kept]()
  private val inUse = new AtomicLong()

  private lazy val sweeper = {
    val e = Executors.newSingleThreadScheduledExecutor { r =>
      val t = new Thread(r, "headgate-cache-sweeper"); t.setDaemon(true); t
    }
    e.scheduleWithFixedDelay(() => sweep(), 10, 10, TimeUnit.SECONDS)
    e
  }

  /** Drops the caches of stores that are no longer loaded here: stopped or moved queries. */
  def sweep(): Unit = kept.keySet.asScala.toSeq.foreach(id => if (!StateStore.isLoaded(id)) kept.remove(id))

  def count: Int = kept.size
  def bytes: Long = kept.values.asScala.map(_.cache.bytes).sum

  /** The cache of the task's store at that version, or an empty one. */
  def take(id: StateStoreProviderId, version: Long, checkpointId: Option[String],
      budget: Long): RowCache = {
    sweeper
    // an earlier run of the same query left its cache under another run id
    kept.keySet.asScala.toSeq.foreach { k =>
      if (k.storeId == id.storeId && k.queryRunId != id.queryRunId) kept.remove(k)
    }
    val found = kept.remove(id)
    val share = budget / math.max(1L, kept.size + inUse.incrementAndGet())
    TaskContext.get().addTaskCompletionListener[Unit](_ => inUse.decrementAndGet())
    if (found != null && found.version == version && found.checkpointId == checkpointId &&
        TaskContext.get().attemptNumber() == 0) {
      found.cache.limitTo(share)
      found.cache
    } else new RowCache(share)
  }

  /** Keeps the cache for the next batch, once the task has succeeded as a whole. */
  def giveBackOnSuccess(id: StateStoreProviderId, version: Long, checkpointId: Option[String],
      cache: RowCache): Unit = {
    val task = TaskContext.get()
    task.addTaskCompletionListener[Unit] { t =>
      if (!t.isFailed() && !t.isInterrupted()) kept.put(id, Kept(version, checkpointId, cache))
    }
  }
}
