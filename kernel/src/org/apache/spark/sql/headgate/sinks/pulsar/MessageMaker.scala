/** Owns a sink's rows as messages of Pulsar, and the partition that a message belongs to. */
package org.apache.spark.sql.headgate.sinks.pulsar

import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import org.apache.pulsar.client.api.TypedMessageBuilder

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.sinks.core.RecordParts

/** A message that is to be sent.
  *
  * @param keyBytes the key, if it is not text
  * @param keyText the key as Pulsar has it: text, or bytes in base64
  * @param eventTimeMs 0 if there is none
  * @param bytes how large it is
  */
private[headgate] final class Outgoing(
    val keyText: String,
    keyBytes: Array[Byte],
    value: Array[Byte],
    properties: Seq[(String, String)],
    eventTimeMs: Long,
    val bytes: Long) {

  def on(builder: TypedMessageBuilder[Array[Byte]]): TypedMessageBuilder[Array[Byte]] = {
    if (keyBytes != null) builder.keyBytes(keyBytes) else if (keyText != null) builder.key(keyText)
    properties.foreach { case (name, text) => builder.property(name, text) }
    if (eventTimeMs > 0) builder.eventTime(eventTimeMs)
    builder.value(value)
  }
}

/** One instance serves one task. */
private[headgate] final class MessageMaker(plan: PulsarPlan, timeZone: String) {
  private val hidden = plan.options.hidden
  private val parts = new RecordParts(plan.shown, plan.schema, hidden, timeZone)
  private val properties = hidden.indexOf("properties")
  private val eventTime = hidden.indexOf("event_time")
  private var size = 0L

  def message(row: InternalRow): Outgoing = {
    val (key, value) = (parts.keyOf(row), parts.valueOf(row))
    val (text, bytes) =
      if (key == null) (null, null)
      else if (parts.keyIsText) (new String(key, UTF_8), null)
      else (Base64.getEncoder.encodeToString(key), key)
    size = (if (key == null) 0L else key.length.toLong) + (if (value == null) 0L else value.length.toLong)
    val named = propertiesOf(row)
    new Outgoing(text, bytes, value, named, eventTimeOf(row), size)
  }

  /** Pulsar knows no time before 1970: such a row has none. */
  private def eventTimeOf(row: InternalRow): Long =
    if (eventTime < 0 || row.isNullAt(eventTime)) 0L else RecordParts.millis(row.getLong(eventTime))

  /** Pairs, since maps cannot be sorted; Pulsar knows no property without a value. */
  private def propertiesOf(row: InternalRow): Seq[(String, String)] =
    if (properties < 0 || row.isNullAt(properties)) Nil
    else {
      val pairs = row.getArray(properties)
      (0 until pairs.numElements()).map(pairs.getStruct(_, 2)).filterNot(_.isNullAt(1)).map { pair =>
        val (name, text) = (pair.getUTF8String(0), pair.getUTF8String(1))
        size += name.numBytes + text.numBytes
        name.toString -> text.toString
      }
    }
}

private[headgate] object Routing {

  /** Where Pulsar's own clients send a key (JavaStringHash); without one, by the row's number. */
  def of(message: Outgoing, row: Long, partitions: Int): Int =
    if (message.keyText == null) (row % partitions).toInt
    else (message.keyText.hashCode & Int.MaxValue) % partitions
}
