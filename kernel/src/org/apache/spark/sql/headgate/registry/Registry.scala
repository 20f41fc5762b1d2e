/** Owns what is asked of a schema registry: schemas by id, and ids of schemas. */
package org.apache.spark.sql.headgate.registry

import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}

/** A schema as the registry keeps it: it never changes under its id.
  *
  * @param kind AVRO, JSON or PROTOBUF
  * @param references the texts of the schemas that it names, each before those that name it
  */
final case class Registered(kind: String, text: String, references: Seq[String])

/** One registry. One object serves a process: its threads may call it at once. */
final class Registry private (access: RegistryAccess) {
  private val http = new RegistryHttp(access)
  private val byId = new ConcurrentHashMap[Int, Registered]()

  /** The schema with an id, asked for once; none if the registry has no such id. */
  def schema(id: Int): Option[Registered] = Option(byId.get(id)).orElse {
    val answer = http.get(s"/schemas/ids/$id", WantedSchema)
    if (answer.code == Registry.NoSchema) None
    else {
      val found = registered(good(answer))
      byId.put(id, found)
      Some(found)
    }
  }

  /** The newest schema of a subject; none if it has none. */
  def latest(subject: String): Option[Registered] = {
    val answer = http.get(s"/subjects/${encoded(subject)}/versions/latest", WantedSchema)
    if (answer.code == Registry.NoSubject || answer.code == Registry.NoVersion) None
    else Some(registered(good(answer)))
  }

  /** The id of a schema under a subject; it is added to the subject unless it is there. */
  def register(subject: String, schema: Registered): Int = {
    val answer = http.post(s"/subjects/${encoded(subject)}/versions", body(schema), WantedId)
    if (answer.status == Registry.Incompatible) {
      throw new CodedStateException(Coded("SCHEMA_MISFIT",
        "text" -> s"the subject $subject of the registry $access refuses the schema of the rows: ${answer.text}"))
    }
    good(answer).path("id").asInt
  }

  /** The id of a schema that a subject has; none if it has not. */
  def find(subject: String, schema: Registered): Option[Int] = {
    val answer = http.post(s"/subjects/${encoded(subject)}", body(schema), WantedId)
    if (answer.code == Registry.NoSubject || answer.code == Registry.NoSchema) None
    else Some(good(answer).path("id").asInt)
  }

  private def good(answer: Answer): JsonNode =
    if (answer.isGood) answer.body else throw RegistryHttp.refused(answer)

  private def registered(json: JsonNode): Registered = Registered(
    json.path("schemaType").asText("AVRO"), json.path("schema").asText, references(json).distinct)

  private def references(json: JsonNode): Seq[String] =
    json.path("references").elements.asScala.toSeq.flatMap { one =>
      val path = s"/subjects/${encoded(one.path("subject").asText)}/versions/${one.path("version").asInt}"
      val found = good(http.get(path, WantedSchema))
      references(found) :+ found.path("schema").asText
    }

  private def body(schema: Registered): JsonNode = JsonNodeFactory.instance.objectNode()
    .put("schemaType", schema.kind).put("schema", schema.text)

  private def encoded(subject: String): String = URLEncoder.encode(subject, UTF_8).replace("+", "%20")
}

object Registry {
  private val Incompatible = 409
  private val NoSubject = 40401
  private val NoVersion = 40402
  private val NoSchema = 40403
  private val known = new ConcurrentHashMap[RegistryAccess, Registry]()

  /** The registry of this process, with what it has answered so far. */
  def of(access: RegistryAccess): Registry = known.computeIfAbsent(access, new Registry(_))
}
