/** Owns how a failure names itself: a code and fields, in one line that can be read out of a text. */
package org.apache.spark.sql.headgate.failures

import com.fasterxml.jackson.core.JacksonException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}

/** A code that Python has a reason for, and the fields that its sentence is made of.
  *
  * What fails in a task may reach the driver as nothing but text inside another exception's message, and
  * what fails in a Python worker always does. So the message of a coded failure is `HEADGATE ` and one
  * JSON object without line breaks, which ends where the object ends, whatever is put behind it.
  */
final class Coded private (val code: String, json: String) extends Serializable {
  def line: String = Coded.Mark + json

  /** All but the code. */
  def fields: ObjectNode = {
    val all = Coded.mapper.readTree(json).asInstanceOf[ObjectNode]
    all.remove(Coded.Code)
    all
  }
}

object Coded {
  private val Mark = "HEADGATE "
  private val Code = "code"
  private val mapper = new ObjectMapper()

  /** Fields are texts and numbers; those that are null are left out. */
  def apply(code: String, fields: (String, Any)*): Coded = {
    val json = JsonNodeFactory.instance.objectNode().put(Code, code)
    fields.foreach {
      case (_, null) =>
      case (name, value: Int) => json.put(name, value)
      case (name, value: Long) => json.put(name, value)
      case (name, value) => json.put(name, value.toString)
    }
    new Coded(code, json.toString)
  }

  /** The first coded line in a text. */
  def find(text: String): Option[Coded] =
    Iterator.iterate(start(text, 0))(at => start(text, at + 1)).takeWhile(_ >= 0)
      .flatMap(at => parse(text.substring(at + Mark.length))).nextOption()

  private def start(text: String, from: Int): Int = text.indexOf(Mark + "{", from)

  private def parse(text: String): Option[Coded] =
    try mapper.readTree[JsonNode](mapper.createParser(text)) match {
      case json: ObjectNode if json.path(Code).isTextual =>
        Some(new Coded(json.get(Code).asText, json.toString))
      case _ => None
    } catch { case _: JacksonException => None }
}

/** Mixed into every exception of the kernel that Python tells apart; its message is `coded.line`. */
trait CodedFailure { self: Throwable =>
  def coded: Coded
}

/** What must not be, without a class of its own. */
class CodedStateException(val coded: Coded, cause: Throwable = null)
  extends IllegalStateException(coded.line, cause) with CodedFailure

/** What Python gave does not fit; pyspark knows the class. */
class CodedArgumentException(val coded: Coded)
  extends IllegalArgumentException(coded.line) with CodedFailure
