package org.apache.spark.sql.headgate.steps.window

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * What a window step does, but for its expressions. Times are in microseconds.
 *
 * @param size     how long windows are; the gap that ends them for sessions
 * @param slide    how far apart windows begin; `size` for tumbling ones
 * @param lateness how long after its end a window is still updated
 * @param every    early rows whenever the watermark passes a multiple of it; 0: none
 * @param clock    the same for processing time
 * @param afterCount early rows after so many rows; 0: none
 * @param once     for each condition of an early row: whether it fires once a window
 * @param processing whether windows are of processing time: rows have the time of their batch
 * @param discarding whether a pane has only the rows since the pane before
 */
case class Windowing(step: String, session: Boolean, size: Long, slide: Long, offset: Long,
    lateness: Long, every: Long, clock: Long, afterCount: Long, once: Seq[Boolean],
    discarding: Boolean, processing: Boolean) {
  /** Whether windows that changed are noted until time has passed. */
  def notes: Boolean = every > 0 || clock > 0
  /** Whether the clock makes something due. */
  def byClock: Boolean = clock > 0 || processing
}

object Windowing {
  private val mapper = new ObjectMapper()

  def parse(text: String): Windowing = {
    val json = mapper.readTree(text)
    def number(field: String) = json.get(field).asLong
    val once = Seq.tabulate(json.get("once").size)(i => json.get("once").get(i).asBoolean)
    Windowing(json.get("step").asText, json.get("session").asBoolean, number("size"), number("slide"),
      number("offset"), number("lateness"), number("every"), number("clock"), number("after_count"), once,
      json.get("discarding").asBoolean, json.get("processing").asBoolean)
  }
}
