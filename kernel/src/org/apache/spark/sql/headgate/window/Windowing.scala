package org.apache.spark.sql.headgate.window

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

/**
 * What a window step does, but for its expressions. Times are in microseconds of event time.
 *
 * @param slide    how far apart windows begin; `size` for tumbling ones
 * @param lateness how long after its end a window is still updated
 * @param every    early rows whenever the watermark passes a multiple of it; 0: none
 * @param afterCount early rows after so many rows; 0: none
 * @param once     for each condition of an early row: whether it fires once a window
 * @param discarding whether a pane has only the rows since the pane before
 */
case class Windowing(step: String, size: Long, slide: Long, offset: Long, lateness: Long,
    every: Long, afterCount: Long, once: Seq[Boolean], discarding: Boolean)

object Windowing {
  private val mapper = new ObjectMapper()

  def parse(text: String): Windowing = {
    val json = mapper.readTree(text)
    def number(field: String) = json.get(field).asLong
    val once = Seq.tabulate(json.get("once").size)(i => json.get("once").get(i).asBoolean)
    Windowing(json.get("step").asText, number("size"), number("slide"), number("offset"),
      number("lateness"), number("every"), number("after_count"), once,
      json.get("discarding").asBoolean)
  }
}
