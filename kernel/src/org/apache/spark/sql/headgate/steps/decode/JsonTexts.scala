/** Owns columns that hold the JSON of their field as it stands in the record. */
package org.apache.spark.sql.headgate.steps.decode

import scala.util.control.NonFatal

import com.fasterxml.jackson.core.{JsonFactory, JsonParser, JsonToken}

import org.apache.spark.sql.headgate.json.{JacksonReader, Utf8}
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** Reads the other columns as ever, and cuts these out of the text: a string keeps its quotes, a number its
  * zeros, an object its spaces. A field that is not there is null, one that is `null` is that text.
  *
  * @param texts the columns that are cut out
  */
private[decode] final class JsonTexts(
    columns: StructType, texts: Set[String], isText: Boolean, timeZone: String)
  extends ValueDecoder {
  private val cut = columns.zipWithIndex.collect { case (c, i) if texts(c.name) => c.name -> i }.toMap
  private val others = columns.indices.filterNot(i => texts(columns(i).name)).toArray
  private val reader = new JacksonReader(StructType(others.map(columns(_))), timeZone)
  private val factory = new JsonFactory()

  override def read(value: UTF8String, out: Array[Any]): String = {
    if (!isText && !Utf8.isValid(value)) return ValueDecoder.NotText
    val row = reader.read(value)
    if (row == null) return reader.reason
    others.indices.foreach { i =>
      out(others(i)) = if (row.isNullAt(i)) null else row.get(i, columns(others(i)).dataType)
    }
    cut.values.foreach(out(_) = null)
    try {
      fill(value.getBytes, out)
      null
    } catch { case NonFatal(e) => "not valid JSON: " + e.getMessage.takeWhile(_ != '\n') }
  }

  private def fill(bytes: Array[Byte], out: Array[Any]): Unit = {
    val parser = factory.createParser(bytes)
    try {
      if (parser.nextToken() != JsonToken.START_OBJECT) throw new IllegalArgumentException("no object")
      while (parser.nextToken() == JsonToken.FIELD_NAME) {
        val at = cut.get(parser.currentName)
        parser.nextToken()
        val from = parser.currentTokenLocation.getByteOffset.toInt
        val until = end(parser)
        at.foreach(out(_) = UTF8String.fromBytes(bytes, from, until - from))
      }
    } finally parser.close()
  }

  /** Where the value ends at whose first token the parser stands. */
  private def end(parser: JsonParser): Int = {
    parser.skipChildren()
    parser.finishToken() // a string is not read before it is asked for
    parser.currentLocation.getByteOffset.toInt
  }
}
