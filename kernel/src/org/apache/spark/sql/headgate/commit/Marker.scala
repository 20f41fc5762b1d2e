/** Owns what a sink's marker says of a batch that is out, and when it speaks of the batch at hand. */
package org.apache.spark.sql.headgate.commit

import java.nio.charset.StandardCharsets.UTF_8
import java.security.MessageDigest

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure}
import org.apache.spark.sql.headgate.spark.{RunningBatch, RunningQuery, Session}

/** How far the sources are after a batch: what `offsets/N` of Spark's checkpoint says. */
case class Position(timeMs: Long, watermarkMs: Long, offsets: Seq[String]) {

  /** The same for every replay of a batch; Python makes it, too (snapshots/spark_log.py). */
  def fingerprint: String = {
    val text = (Seq(timeMs.toString, watermarkMs.toString) ++ offsets).mkString("\n")
    MessageDigest.getInstance("SHA-256").digest(text.getBytes(UTF_8))
      .take(8).map(b => f"${b & 0xff}%02x").mkString
  }
}

/** A batch that is out.
  *
  * @param fingerprint of the batch's position; empty in markers of versions that wrote none
  * @param owner the id of the job in its home; empty if it is not known
  * @param position left out where there is no room for it
  */
case class Marker(
    batch: Long, fingerprint: String = "", owner: String = "", position: Option[Position] = None) {

  /** Whether the batch at hand is out by this marker.
    *
    * A batch is run again only from the same offsets, and none is run again when a later one is out.
    * In all other cases this home is older than its sinks: to take the batch for out would
    * lose its rows.
    */
  def holds(other: Marker, sink: String): Boolean =
    if (batch < other.batch) false
    else if (batch == other.batch && sameRows(other)) true
    else throw new SinkAheadException(sink, this, other.batch)

  /** As far as both say it. */
  private def sameRows(other: Marker): Boolean =
    fingerprint.isEmpty || other.fingerprint.isEmpty || fingerprint == other.fingerprint

  /** The later one; `this` of two that are the same. */
  def newer(other: Marker): Marker = if (other.batch > batch) other else this

  def writeTo(json: ObjectNode, mostBytes: Int = Int.MaxValue): ObjectNode = {
    json.put("batch", batch)
    if (fingerprint.nonEmpty) json.put("fingerprint", fingerprint)
    if (owner.nonEmpty) json.put("owner", owner)
    position.filter(_.offsets.map(_.length).sum <= mostBytes).foreach { at =>
      json.put("time", at.timeMs).put("watermark", at.watermarkMs)
      val lines = json.putArray("offsets")
      at.offsets.foreach(lines.add(_))
    }
    json
  }

  def toJson: String = writeTo(JsonNodeFactory.instance.objectNode()).toString

  /** What fits where only a short text does. */
  def toShortJson: String =
    copy(position = None).writeTo(JsonNodeFactory.instance.objectNode()).toString
}

object Marker {
  private val mapper = new ObjectMapper()

  def read(json: JsonNode): Marker = {
    val lines = json.path("offsets")
    val position = if (!lines.isArray) None else Some(Position(
      json.path("time").asLong, json.path("watermark").asLong,
      lines.elements.asScala.map(_.asText).toSeq))
    Marker(json.path("batch").asLong(-1L), json.path("fingerprint").asText(""),
      json.path("owner").asText(""), position)
  }

  def parse(json: Array[Byte]): Marker = read(mapper.readTree(json))

  /** A batch's number with what a short text says of it; anything that is no such text says nothing. */
  def of(batch: Long, shortJson: String): Marker =
    try read(mapper.readTree(Option(shortJson).getOrElse(""))).copy(batch = batch)
    catch { case _: com.fasterxml.jackson.core.JacksonException => Marker(batch) }

  /** Of the batch that runs on this thread: what its sinks leave when they have it. */
  def ofRunning(session: Session, owner: String): Option[Marker] =
    for (query <- RunningQuery.of(session); batch <- RunningBatch.of(session)) yield {
      val position = query.offsetsOf(batch.id).map(Position(batch.timeMs, batch.watermarkMs, _))
      Marker(batch.id, position.fold("")(_.fingerprint), owner, position)
    }
}

/** A batch with a number that the sink has already, for other rows. */
class SinkAheadException(val coded: Coded) extends RuntimeException(coded.line) with CodedFailure {
  def this(sink: String, found: Marker, batch: Long) =
    this(Coded("SINK_AHEAD", "sink" -> sink, "batch" -> batch, "found" -> found.batch))
}
