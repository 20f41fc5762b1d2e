package org.apache.spark.sql.headgate.steps.aggregate

import com.fasterxml.jackson.databind.ObjectMapper

/**
 * What a running aggregate does, but for its expressions. Times are in microseconds.
 *
 * @param ttl         for how long a key is kept that gets no rows; 0: for ever
 * @param byEventTime whether the ttl goes by event time, and the last result is the newest of a key's rows
 * @param every       updates whenever the watermark passes a multiple of it; 0: they do not
 * @param clock       the same for processing time; if both are 0, there are updates in every batch
 */
case class AggregateSpec(step: String, ttl: Long, byEventTime: Boolean, every: Long, clock: Long) {
  /** Whether keys that changed are noted until time has passed. */
  def notes: Boolean = every > 0 || clock > 0
}

object AggregateSpec {
  private val mapper = new ObjectMapper()

  def parse(text: String): AggregateSpec = {
    val json = mapper.readTree(text)
    def number(field: String) = json.get(field).asLong
    AggregateSpec(json.get("step").asText, number("ttl"), json.get("by_event_time").asBoolean, number("every"),
      number("clock"))
  }
}
