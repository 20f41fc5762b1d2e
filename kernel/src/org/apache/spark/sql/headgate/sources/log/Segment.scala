/** Owns the name of a segment file, which says all there is to know about its records' offsets. */
package org.apache.spark.sql.headgate.sources.log

/** One immutable file of a topic partition: `count` records from offset `base` on.
  *
  * @param millis when the records were appended, in milliseconds since 1970
  * @param keyed whether each line is a key, a TAB and a value, rather than the value alone
  */
case class Segment(base: Long, count: Long, millis: Long, keyed: Boolean) {
  def end: Long = base + count

  def name: String = f"$base%020d-$count-$millis" + (if (keyed) Segment.Keyed else Segment.Plain)
}

object Segment {
  private val Plain = ".jsonl"
  private val Keyed = ".keyed.jsonl"

  /** The segment of a file name, or null for a file that is none. */
  def parse(name: String): Segment = {
    val keyed = name.endsWith(Keyed)
    if (name.startsWith("_") || !(keyed || name.endsWith(Plain))) return null
    val parts = name.stripSuffix(if (keyed) Keyed else Plain).split('-')
    if (parts.length != 3 || !parts.forall(isNumber)) null
    else Segment(parts(0).toLong, parts(1).toLong, parts(2).toLong, keyed)
  }

  private def isNumber(s: String): Boolean =
    s.nonEmpty && s.length <= 20 && s.forall(c => c >= '0' && c <= '9')
}
