/** Owns reading a sink's part of the spec. */
package org.apache.spark.sql.headgate.sinks.core

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

/** The JSON object of one sink; a field that is missing or null has the value that is given. */
final class SpecNode(node: JsonNode) {
  def text(name: String, otherwise: String = ""): String =
    Option(node.get(name)).filterNot(_.isNull).map(_.asText).getOrElse(otherwise)

  def number(name: String, otherwise: Int): Int =
    Option(node.get(name)).filter(_.isNumber).map(_.asInt).getOrElse(otherwise)

  def list(name: String): Seq[String] =
    Option(node.get(name)).toSeq.flatMap(_.elements.asScala.map(_.asText))

  def texts(name: String): Map[String, String] =
    Option(node.get(name)).filter(_.isObject)
      .map(_.properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap)
      .getOrElse(Map.empty[String, String])

  /** A part as it is, or null. */
  def part(name: String): JsonNode = node.get(name)

  /** The delivery, for kinds that know both. */
  def exactlyOnce: Boolean = text("delivery", "exactly_once") match {
    case "exactly_once" => true
    case "at_least_once" => false
    case other => throw new IllegalArgumentException(
      s"delivery must be exactly_once or at_least_once, got '$other'")
  }
}
