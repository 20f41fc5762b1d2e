/** Owns reading a JSON value: the fast reader where it succeeds, Spark's own parser elsewhere. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter
import org.apache.spark.sql.headgate.json.{FlatJsonReader, JacksonReader, Utf8}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** @param isText the source vouches for the text; bytes that are no UTF-8 are malformed, for
  *   Spark's parser would put a replacement character where they are and say nothing
  */
final class JsonValue(columns: StructType, isText: Boolean, timeZone: String) extends ValueDecoder {
  private val width = columns.length
  private val flat = new FlatJsonReader(columns)
  private lazy val sure = new JacksonReader(columns, timeZone)

  // The fast reader is worth its time only where it mostly succeeds.
  private var tryFlat = FlatJsonReader.supports(columns)
  private var missed = 0

  override def write(value: UTF8String, out: UnsafeRowWriter): Boolean = {
    if (!tryFlat) return false
    if (flat.read(value, out)) {
      if (missed > 0) missed -= 1
      return true
    }
    missed += 1
    if (missed == JsonValue.GiveUp) tryFlat = false
    false
  }

  override def read(value: UTF8String, out: Array[Any]): String = {
    if (!isText && !Utf8.isValid(value)) return ValueDecoder.NotText
    val parsed = sure.read(value)
    if (parsed == null) return sure.reason
    var c = 0
    while (c < width) {
      out(c) = if (parsed.isNullAt(c)) null else parsed.get(c, columns(c).dataType)
      c += 1
    }
    null
  }
}

private object JsonValue {
  /** So many more misses than hits, and the fast reader is left out for the rest of the task. */
  val GiveUp = 1000
}
