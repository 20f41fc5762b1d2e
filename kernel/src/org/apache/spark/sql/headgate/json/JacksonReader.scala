/** Owns the sure way in: Spark's own JSON parser, with a short reason for what it refuses. */
package org.apache.spark.sql.headgate.json

import com.fasterxml.jackson.core.{JsonProcessingException, JsonToken}

import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.json.{CreateJacksonParser, JacksonParser, JSONOptions}
import org.apache.spark.sql.catalyst.util._
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** Reads one JSON object a record with Spark's JacksonParser and its default options.
  *
  * A record that Spark would read only in part is refused as a whole: a row with holes that nobody
  * wanted is worse than a malformed record that somebody sees.
  */
final class JacksonReader(schema: StructType, timeZone: String) {
  private val parser = new JacksonParser(
    schema, new JSONOptions(Map.empty[String, String], timeZone), allowArrayAsStructs = false)
  private var why = ""

  /** The row, or null; then [[reason]] says why. */
  def read(text: UTF8String): InternalRow =
    try {
      val rows = parser.parse[UTF8String](
        text, (factory, t) => CreateJacksonParser.utf8String(factory, t), identity).iterator
      if (rows.hasNext) rows.next()
      else {
        why = JacksonReader.Empty
        null
      }
    } catch {
      case e: BadRecordException =>
        why = JacksonReader.sentence(e.cause)
        null
    }

  /** Why the last record was refused, in a few words. */
  def reason: String = why
}

object JacksonReader {

  /** The reason given for a record without text. */
  val Empty = "empty record"
  private val NotAnObject = "not a JSON object"
  private val MaxReason = 200

  private def sentence(cause: Throwable): String = {
    val text = cause match {
      case l: LazyBadRecordCauseWrapper => sentence(l.cause())
      case _: JsonArraysAsStructsException => NotAnObject
      case CannotParseJSONFieldException(name, value, token, dataType) =>
        misfit(name, value, token == JsonToken.VALUE_STRING, dataType.sql)
      case StringAsDataTypeException(name, value, dataType) =>
        misfit(name, value, isText = true, dataType.sql)
      case EmptyJsonFieldValueException(dataType) => s"an empty text is not a ${dataType.sql}"
      case e: JsonProcessingException => "not valid JSON: " + e.getOriginalMessage
      case e: SparkThrowable if e.getCondition == "CANNOT_PARSE_JSON_FIELD" =>
        val p = e.getMessageParameters
        misfit(unquoted(p.get("fieldName")), unquoted(p.get("fieldValue")),
          p.get("jsonType").contains("STRING"), unquoted(p.get("dataType")))
      case e: SparkThrowable if e.getCondition == "INVALID_JSON_ROOT_FIELD" => NotAnObject
      case e: SparkThrowable if e.getCondition == "EMPTY_JSON_FIELD_VALUE" =>
        s"an empty text is not a ${unquoted(e.getMessageParameters.get("dataType"))}"
      case e => Option(e.getMessage).getOrElse(e.getClass.getSimpleName)
    }
    val line = text.takeWhile(c => c != '\n' && c != '\r')
    if (line.length <= MaxReason) line else line.take(MaxReason - 3) + "..."
  }

  /** What does not fit where; a field without a name is the root itself. */
  private def misfit(name: String, value: String, isText: Boolean, dataType: String): String =
    if (name == null || name.isEmpty || name == "null") NotAnObject
    else {
      val shown = if (value.length <= 40) value else value.take(37) + "..."
      s"field '$name' is not a $dataType: ${if (isText) "\"" + shown + "\"" else shown}"
    }

  private def unquoted(s: String): String =
    if (s == null) "" else s.replaceAll("^[\"']+|[\"']+$", "")
}
