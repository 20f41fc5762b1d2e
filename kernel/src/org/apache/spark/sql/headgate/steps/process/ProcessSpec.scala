package org.apache.spark.sql.headgate.steps.process

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}

import org.apache.spark.sql.types._

/** A list or map state; `ttl` in microseconds, 0 if entries are kept for ever. */
case class EntryState(name: String, key: Option[DataType], value: DataType, ttl: Long)

/**
 * What Python tells of a process step.
 *
 * @param main   the columns of a key's main row; the last are its times, as many as there are clocks
 * @param clocks by which clock each time comes: event, processing or expiry
 */
case class ProcessSpec(step: String, keys: Int, inputs: Int, main: StructType, clocks: Seq[String],
    lists: Seq[EntryState], maps: Seq[EntryState], outputs: Seq[StructType], outputNames: Seq[String],
    position: String, time: String) {
  def firstTime: Int = main.length - clocks.length
  /** Where in the main row the number of a list's or map's entries is. */
  def entriesAt(state: EntryState): Int = main.fieldIndex(s"${state.name}.entries")
}

object ProcessSpec {
  val Key = "__hg_key"
  val Row = "__hg_row"
  val Input = "__hg_input"
  val Tie = "__hg_tie"
  val Output = "__hg_given"

  def parse(text: String): ProcessSpec = {
    val json = new ObjectMapper().readTree(text)
    def dataType(node: JsonNode) = DataType.fromJson(node.toString)
    def texts(field: String) = json.get(field).elements.asScala.map(_.asText).toSeq
    def states(field: String) = json.get(field).elements.asScala.map { s =>
      EntryState(s.get("name").asText, Option(s.get("key")).filterNot(_.isNull).map(dataType),
        dataType(s.get("value")), s.get("ttl").asLong)
    }.toSeq
    ProcessSpec(json.get("step").asText, json.get("keys").asInt, json.get("inputs").asInt,
      dataType(json.get("main")).asInstanceOf[StructType], texts("clocks"), states("lists"),
      states("maps"), json.get("outputs").elements.asScala.map(dataType(_).asInstanceOf[StructType]).toSeq,
      texts("output_names"), json.get("position").asText, json.get("time").asText)
  }
}
