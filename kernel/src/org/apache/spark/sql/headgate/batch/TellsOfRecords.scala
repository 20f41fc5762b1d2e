package org.apache.spark.sql.headgate.batch

import org.apache.spark.sql.connector.read.streaming.{Offset, SparkDataStream}

/**
 * A source that can tell at little cost that it has new records, while its query waits.
 *
 * Spark's own look at a source is a trigger: it asks all sources, makes a report, and sleeps.
 */
trait TellsOfRecords extends SparkDataStream {
  /**
   * Whether there are records behind an offset. Called on the query's thread many times a second: it neither
   * waits nor fails. A wrong answer does no harm: after yes Spark looks, after no it looks when the interval is over.
   */
  def hasRecordsBehind(seen: Offset): Boolean
}
