/** Owns the failure that a bad record is. */
package org.apache.spark.sql.headgate.steps.decode

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure}

/** A record that does not parse, in a source that fails on one. */
class MalformedRecordException(val coded: Coded) extends RuntimeException(coded.line) with CodedFailure

object MalformedRecordException {
  private val MaxText = 200

  /** @param text of the record; only its start is kept */
  def apply(
      step: String,
      topic: String,
      partition: Int,
      offset: Long,
      reason: String,
      text: String): MalformedRecordException =
    new MalformedRecordException(Coded("MALFORMED_RECORD",
      "step" -> step, "topic" -> topic, "partition" -> partition, "offset" -> offset,
      "reason" -> reason, "text" -> (if (text == null) null else text.take(MaxText))))
}
