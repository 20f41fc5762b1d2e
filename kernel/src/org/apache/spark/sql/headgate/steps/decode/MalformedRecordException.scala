/** Owns the failure that a bad record is, in a form that Python can read. */
package org.apache.spark.sql.headgate.steps.decode

import com.fasterxml.jackson.databind.node.JsonNodeFactory

/** A record that does not parse, in a source that fails on one.
  *
  * The message is `HEADGATE_MALFORMED ` and one line of JSON: step, topic, partition, offset,
  * reason, and the start of the record's text.
  */
class MalformedRecordException(message: String) extends RuntimeException(message)

object MalformedRecordException {
  private val Prefix = "HEADGATE_MALFORMED "
  private val MaxText = 200

  def apply(
      step: String,
      topic: String,
      partition: Int,
      offset: Long,
      reason: String,
      text: String): MalformedRecordException = {
    val json = JsonNodeFactory.instance.objectNode()
    json.put("step", step).put("topic", topic).put("partition", partition).put("offset", offset)
    json.put("reason", reason)
    json.put("text", if (text == null || text.length <= MaxText) text else text.take(MaxText))
    new MalformedRecordException(Prefix + json.toString)
  }
}
