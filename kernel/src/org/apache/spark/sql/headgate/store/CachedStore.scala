package org.apache.spark.sql.headgate.store

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.headgate.spark.{OpenStores, StateStore}

/**
 * The first store of a task, with the cache of its rows that was kept since the last batch: most
 * reads never come to RocksDB.
 *
 * @param cacheBytes what all caches of the executor may hold; 0 for none
 */
final class CachedStore(opened: OpenStores, cacheBytes: Long) {
  private val store: StateStore = opened.stores.head
  private val id = opened.ids.head
  private val cache =
    if (cacheBytes > 0) RowCaches.take(id, opened.version, opened.loadedIds.map(_.head), cacheBytes) else null
  private var found = 0L

  /** Reads that the cache has answered. */
  def hits: Long = found
  def bytes: Long = if (cache == null) 0L else cache.bytes

  /** The row of a key, or null; good until the next call. */
  def get(key: UnsafeRow): UnsafeRow =
    if (cache == null) store.get(key)
    else {
      val cached = cache.get(key)
      if (cached != null) { found += 1; if (cached eq RowCache.Absent) null else cached }
      else {
        val read = store.get(key)
        cache.put(key, if (read == null) RowCache.Absent else read)
        read
      }
    }

  def put(key: UnsafeRow, value: UnsafeRow): Unit = {
    store.put(key, value)
    if (cache != null) cache.put(key, value)
  }

  def remove(key: UnsafeRow): Unit = {
    store.remove(key)
    if (cache != null) cache.put(key, RowCache.Absent)
  }

  /** To be called once the store is committed: the cache is kept for the next batch. */
  def committed(): Unit = if (cache != null) {
    RowCaches.giveBackOnSuccess(id, opened.version + 1, opened.committedId(0), cache)
  }
}
