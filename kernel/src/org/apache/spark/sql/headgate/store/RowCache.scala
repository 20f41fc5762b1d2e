package org.apache.spark.sql.headgate.store

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

/**
 * State rows of one store partition, by key. `Absent` stands for a key that is not in the store.
 *
 * Rows lie one after the other in chunks of bytes: millions of them are a few hundred objects to
 * the garbage collector. When there is no room for another chunk the oldest one is written anew,
 * and its rows are forgotten. A cache that began with an empty store and has forgotten nothing
 * is complete: what it does not hold is not in the store either, and no read is needed.
 *
 * @param room may this cache take that many bytes more?
 */
final class RowCache(chunkBytes: Int, beginsEmpty: Boolean, room: (RowCache, Long) => Boolean) {
  import RowCache._
  require(Integer.bitCount(chunkBytes) == 1 && chunkBytes >= 1024, s"chunk of $chunkBytes bytes")

  private val chunkWords = chunkBytes >> 3
  private val chunkShift = Integer.numberOfTrailingZeros(chunkWords)
  // chunk n is at n & (length - 1); its words are numbered from n << chunkShift
  private var chunks = new Array[Array[Byte]](8)
  private var first = 1L // never 0: a place in the index that is 0 is free
  private var last = 0L
  private var tail = 0 // bytes used of the last chunk
  // open addressing; an entry is 24 bits of the hash and the row's first word
  private var index = new Array[Long](FirstSlots)
  private var taken = 0
  private var complete = beginsEmpty
  private var row: UnsafeRow = _
  @volatile private var held = FirstSlots * 8L

  def bytes: Long = held
  def isComplete: Boolean = complete

  /** The row, `Absent`, or null when the cache does not know. The row is good until the next call. */
  def get(key: UnsafeRow): UnsafeRow = {
    val at = index(slotOf(key, hashOf(key)))
    if (at == 0L) { if (complete) Absent else null }
    else {
      val chunk = chunkOf(at)
      val header = headerOf(at)
      val size = Platform.getInt(chunk, header + 8)
      if (size < 0) Absent
      else {
        row.pointTo(chunk, header + Header + Platform.getInt(chunk, header + 4), size)
        row
      }
    }
  }

  /** Keeps a copy of both. */
  def put(key: UnsafeRow, value: UnsafeRow): Unit = {
    val absent = value eq Absent
    if (!absent && row == null) row = new UnsafeRow(value.numFields)
    val keySize = key.getSizeInBytes
    val size = if (absent) 0 else value.getSizeInBytes
    val hash = hashOf(key)
    val known = slotOf(key, hash)
    val old = index(known)
    if (old != 0L && size <= Platform.getInt(chunkOf(old), headerOf(old) + 12))
      write(value, absent, size, chunkOf(old), headerOf(old), keySize)
    else if (makeSpace(Header + keySize + size)) {
      val chunk = chunks(placeOf(last))
      val header = Platform.BYTE_ARRAY_OFFSET.toLong + tail
      Platform.putInt(chunk, header, hash)
      Platform.putInt(chunk, header + 4, keySize)
      Platform.putInt(chunk, header + 12, size)
      Platform.copyMemory(key.getBaseObject, key.getBaseOffset, chunk, header + Header, keySize)
      write(value, absent, size, chunk, header, keySize)
      val entry = entryOf(hash, (last << chunkShift) + (tail >> 3))
      tail += Header + keySize + size
      val slot = slotOf(key, hash) // a chunk that made way may have held the old one
      if (index(slot) == 0L) taken += 1
      index(slot) = entry
      if (taken > index.length / 10 * 6) rebuild()
    } else { // a row too large: at least the old one must not be found
      if (old != 0L) index(known) = Forgotten
      complete = false
    }
  }

  private def write(value: UnsafeRow, absent: Boolean, size: Int, chunk: Array[Byte], header: Long,
      keySize: Int): Unit = {
    Platform.putInt(chunk, header + 8, if (absent) -1 else size)
    if (!absent) Platform.copyMemory(value.getBaseObject, value.getBaseOffset, chunk,
      header + Header + keySize, size)
  }

  private def hashOf(key: UnsafeRow): Int = { val h = key.hashCode * 0x9E3779B9; h ^ (h >>> 15) }
  private def entryOf(hash: Int, word: Long): Long = ((hash >>> 8).toLong << WordBits) | word
  private def wordOf(entry: Long): Long = entry & MaxWord
  private def placeOf(chunk: Long): Int = chunk.toInt & (chunks.length - 1)
  private def chunkOf(entry: Long): Array[Byte] = chunks(placeOf(wordOf(entry) >>> chunkShift))
  private def headerOf(entry: Long): Long =
    Platform.BYTE_ARRAY_OFFSET + ((wordOf(entry) & (chunkWords - 1)) << 3)
  private def isLive(entry: Long): Boolean = wordOf(entry) >= (first << chunkShift)

  /** Where the key is in the index, or the free place where it is not. */
  private def slotOf(key: UnsafeRow, hash: Int): Int = {
    val mask = index.length - 1
    val tag = hash >>> 8
    val size = key.getSizeInBytes
    var i = hash & mask
    while (true) {
      val entry = index(i)
      if (entry == 0L) return i
      if ((entry >>> WordBits).toInt == tag && isLive(entry)) {
        val chunk = chunkOf(entry)
        val header = headerOf(entry)
        if (Platform.getInt(chunk, header + 4) == size && ByteArrayMethods.arrayEquals(
            key.getBaseObject, key.getBaseOffset, chunk, header + Header, size)) return i
      }
      i = (i + 1) & mask
    }
    -1
  }

  /** The last chunk has that much space left, or false. */
  private def makeSpace(wanted: Int): Boolean = {
    if (wanted > chunkBytes) return false
    if (last >= first && tail + wanted <= chunkBytes) return true
    if (((last + 2) << chunkShift) > MaxWord) clear()
    val isNew = room(this, chunkBytes)
    if (!isNew && last < first) return false
    if (last - first + 1 == chunks.length) widen()
    val chunk = if (isNew) new Array[Byte](chunkBytes) else forgetFirst()
    if (isNew) held += chunkBytes
    last += 1
    chunks(placeOf(last)) = chunk
    tail = 0
    true
  }

  private def widen(): Unit = {
    val wider = new Array[Array[Byte]](chunks.length * 2)
    (first to last).foreach(n => wider(n.toInt & (wider.length - 1)) = chunks(placeOf(n)))
    chunks = wider
  }

  private def forgetFirst(): Array[Byte] = {
    val chunk = chunks(placeOf(first))
    chunks(placeOf(first)) = null
    first += 1
    complete = false
    chunk
  }

  /** The index anew, without the forgotten rows; twice as long if they still fill half of it. */
  private def rebuild(): Unit = {
    def live: Int = index.count(e => e != 0L && isLive(e))
    val doubled = live > index.length / 10 * 3
    val length = if (!doubled) index.length
      else if (room(this, index.length * 8L)) index.length * 2
      else {
        while (live > index.length / 10 * 4) { forgetFirst(); held -= chunkBytes }
        index.length
      }
    val old = index
    index = new Array[Long](length)
    held += (length - old.length) * 8L
    taken = 0
    old.foreach { entry =>
      if (entry != 0L && isLive(entry)) {
        var i = Platform.getInt(chunkOf(entry), headerOf(entry)) & (length - 1)
        while (index(i) != 0L) i = (i + 1) & (length - 1)
        index(i) = entry
        taken += 1
      }
    }
  }

  def clear(): Unit = {
    chunks = new Array[Array[Byte]](8)
    first = 1L; last = 0L; tail = 0
    index = new Array[Long](FirstSlots)
    taken = 0
    complete = false
    held = FirstSlots * 8L
  }

  /** Forgets rows, the oldest first, until no more than that is held. */
  def shrinkTo(bytesAtMost: Long): Unit = {
    while (held > bytesAtMost && last >= first) { forgetFirst(); held -= chunkBytes }
    if (held > bytesAtMost) clear()
  }
}

object RowCache {
  private val FirstSlots = 256
  private val Header = 16 // the hash, the key's size, the value's (-1 when absent), its space
  private val WordBits = 40
  private val MaxWord = (1L << WordBits) - 1
  private val Forgotten = 1L // a word of no chunk
  private val SmallestChunk = 4096L
  private val LargestChunk = 1L << 20
  val Absent: UnsafeRow = new UnsafeRow(0)

  /** Chunks small enough that forgetting one of them forgets little. */
  def chunkBytes(budget: Long): Int =
    math.max(SmallestChunk, math.min(LargestChunk, java.lang.Long.highestOneBit(budget / 64))).toInt
}
