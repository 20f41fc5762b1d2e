/** Owns a position in a topic: the next offset of each partition. */
package org.apache.spark.sql.headgate.sources.log

import scala.collection.immutable.TreeMap
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper

import org.apache.spark.sql.connector.read.streaming.Offset

/** `{"0":100,"1":80}`: partitions in order, so that equal positions have equal text. */
case class LogOffset(next: TreeMap[Int, Long]) extends Offset {
  override def json: String = next.map { case (p, o) => s"\"$p\":$o" }.mkString("{", ",", "}")

  /** The next offset of a partition; one that was added since starts at its beginning. */
  def apply(partition: Int): Long = next.getOrElse(partition, 0L)
}

object LogOffset {
  private val mapper = new ObjectMapper()

  def of(offsets: Iterable[(Int, Long)]): LogOffset = LogOffset(TreeMap.from(offsets))

  def parse(json: String): LogOffset =
    of(mapper.readTree(json).properties.asScala.map(e => e.getKey.toInt -> e.getValue.asLong))
}
