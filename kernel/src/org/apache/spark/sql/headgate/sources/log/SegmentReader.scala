/** Owns reading the lines of segments into raw rows, inside a task. */
package org.apache.spark.sql.headgate.sources.log

import java.io.{File, FileInputStream}
import java.util.Collections
import java.util.{LinkedHashMap => JLinkedHashMap, Map => JMap}

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.connector.read.{InputPartition, PartitionReader, PartitionReaderFactory}
import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

object SegmentReaderFactory extends PartitionReaderFactory {
  override def createReader(partition: InputPartition): PartitionReader[InternalRow] =
    new SegmentReader(partition.asInstanceOf[LogInputPartition])
}

/** Gives the records of a range one by one, in one row that each record overwrites.
  *
  * Values point into the read buffer, so a row is good only until the next one is read.
  */
final class SegmentReader(range: LogInputPartition) extends PartitionReader[InternalRow] {
  private val row = new RawRow(range.partition)
  private var buf = new Array[Byte](SegmentReader.BufferSize)
  private var pos = 0
  private var limit = 0
  private var in: FileInputStream = _
  private var file: File = _
  // How many bytes of the file come before buf(0).
  private var before = 0L
  private var index = -1
  private var segment: Segment = _
  private var offset = range.from

  override def next(): Boolean = {
    if (offset >= range.to) return false
    if (segment == null || offset >= segment.end) open()
    val end = lineEnd()
    val start = pos
    if (segment.keyed) keyed(start, end)
    else {
      row.key = null
      row.value = UTF8String.fromBytes(buf, start, end - start)
    }
    row.offset = offset
    pos = end + 1
    offset += 1
    true
  }

  override def get(): InternalRow = row

  override def close(): Unit = closeFile()

  private def open(): Unit = {
    closeFile()
    index += 1
    segment = range.segments(index)
    file = new File(range.folder, segment.name)
    in = new FileInputStream(file)
    pos = 0
    limit = 0
    before = 0L
    row.timestamp = segment.millis * 1000L
    if (offset > segment.base) skipTo(offset)
  }

  /** Skips lines, unless an earlier batch of this process stopped right here. */
  private def skipTo(wanted: Long): Unit = {
    val place = SegmentReader.places.get(SegmentReader.placeOf(file, wanted))
    if (place != null) {
      in.getChannel.position(place)
      before = place
    } else {
      var left = wanted - segment.base
      while (left > 0) {
        pos = lineEnd() + 1
        left -= 1
      }
    }
  }

  private def closeFile(): Unit = if (in != null) {
    if (offset < segment.end) {
      SegmentReader.places.put(SegmentReader.placeOf(file, offset), before + pos)
    }
    in.close()
    in = null
  }

  /** Where the line at `pos` ends; reads on, and may move the line to the buffer's start. */
  private def lineEnd(): Int = {
    var p = pos
    while (true) {
      p = SegmentReader.newline(buf, p, limit)
      if (p < limit) return p
      val scanned = p - pos
      fill()
      p = pos + scanned
    }
    p
  }

  private def fill(): Unit = {
    if (pos > 0) {
      System.arraycopy(buf, pos, buf, 0, limit - pos)
      before += pos
      limit -= pos
      pos = 0
    } else if (limit == buf.length) {
      buf = java.util.Arrays.copyOf(buf, Math.multiplyExact(buf.length, 2))
    }
    val n = in.read(buf, limit, buf.length - limit)
    if (n < 0) throw damaged("SEGMENT_SHORT")
    limit += n
  }

  private def damaged(code: String) =
    new CodedStateException(Coded(code, "file" -> file, "offset" -> offset))

  private def keyed(start: Int, end: Int): Unit = {
    var tab = start
    var escaped = false
    while (tab < end && buf(tab) != '\t') {
      if (buf(tab) == '\\') escaped = true
      tab += 1
    }
    if (tab == end) {
      throw damaged("SEGMENT_BAD")
    }
    row.key =
      if (escaped) KeyText.read(buf, start, tab) else UTF8String.fromBytes(buf, start, tab - start)
    row.value = if (tab + 1 == end) null else UTF8String.fromBytes(buf, tab + 1, end - tab - 1)
  }
}

object SegmentReader {
  private val BufferSize = 1 << 20
  private val MaxPlaces = 1024

  /** Byte positions where a batch stopped inside a segment, so that the next one need not skip. */
  private val places: JMap[String, java.lang.Long] = Collections.synchronizedMap(
    new JLinkedHashMap[String, java.lang.Long](64, 0.75f, true) {
      override def removeEldestEntry(e: JMap.Entry[String, java.lang.Long]): Boolean =
        size() > MaxPlaces
    })

  /** Where the next newline is, or `end`; eight bytes at a time. */
  private def newline(bytes: Array[Byte], from: Int, end: Int): Int = {
    var p = from
    while (p + 8 <= end) {
      // A byte of x is zero where the text has a newline; the usual trick finds zero bytes.
      val x = Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + p) ^ 0x0a0a0a0a0a0a0a0aL
      if (((x - 0x0101010101010101L) & ~x & 0x8080808080808080L) != 0) {
        while (bytes(p) != '\n') p += 1
        return p
      }
      p += 8
    }
    while (p < end && bytes(p) != '\n') p += 1
    p
  }

  private def placeOf(file: File, offset: Long): String = s"$file:${file.length}:$offset"
}
