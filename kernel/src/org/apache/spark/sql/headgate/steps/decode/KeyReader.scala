/** Owns reading a deleted row's key columns from the key of its record. */
package org.apache.spark.sql.headgate.steps.decode

import scala.util.control.NonFatal

import com.fasterxml.jackson.core.{JsonFactory, JsonToken}
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.json.{JacksonReader, Utf8}
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** Fills the key columns of a table from a record's key. A column of the record's metadata is left
  * alone: it is filled as in any other row.
  */
abstract class KeyReader(spec: DecodeSpec) {
  private val ordinals =
    spec.keyColumns.map(spec.schema.fieldIndex).filter(_ < spec.valueColumns).toArray
  protected val keySchema: StructType = StructType(ordinals.map(spec.schema(_)))
  private var why = ""

  /** The values of the key's columns, or null after [[refuse]]. */
  protected def values(key: UTF8String): Array[Any]

  /** Sets the key columns in `row`, or says false; then [[reason]] says why. */
  final def fill(key: UTF8String, row: Array[Any]): Boolean = {
    if (spec.keyColumns.isEmpty) return refuse("a deletion, but the table has no key")
    if (key == null) return refuse("a deletion without a key")
    if (ordinals.isEmpty) return true
    val found = values(key)
    if (found == null) return false
    ordinals.indices.foreach(i => row(ordinals(i)) = found(i))
    true
  }

  /** Leaves nothing but the key in a row that deletes; false if a part of it is null. Where the key is
    * an expression, it is made of whatever the row has.
    */
  final def keepOnly(row: Array[Any]): Boolean = {
    val own = 0 until spec.valueColumns
    if (spec.keyColumns.isEmpty) own.exists(row(_) != null)
    else {
      own.foreach(c => if (!ordinals.contains(c)) row(c) = null)
      ordinals.forall(row(_) != null)
    }
  }

  /** Why the last key was refused. */
  final def reason: String = why

  protected def refuse(reason: String): Boolean = {
    why = reason
    false
  }
}

/** One column: the key is the value itself, plain or as a JSON scalar. Several columns: it is a JSON
  * object. Deletions are rare, so this reads with Jackson and takes its time.
  */
final class TextKeys(spec: DecodeSpec, timeZone: String) extends KeyReader(spec) {
  private val reader = new JacksonReader(keySchema, timeZone)
  private val factory = new JsonFactory()

  override protected def values(key: UTF8String): Array[Any] =
    if (!Utf8.isValid(key)) {
      refuse("the key of a deletion is not valid UTF-8")
      null
    } else if (spec.keyColumns.length == 1) single(key.toString)
    else objectOf(key)

  private def single(text: String): Array[Any] = {
    val field = keySchema(0)
    val scalar = isScalar(text)
    field.dataType match {
      case _: StringType if !scalar || !text.trim.startsWith("\"") =>
        return Array(UTF8String.fromString(text))
      case _ =>
    }
    val name = JsonNodeFactory.instance.textNode(field.name).toString
    // As JSON first; a plain text (a date, say) is then tried as a JSON string.
    val forms = Seq(
      if (scalar) Some(text) else None,
      Some(JsonNodeFactory.instance.textNode(text).toString)).flatten
    forms.iterator
      .map(form => read(UTF8String.fromString(s"{$name:$form}")))
      .find(_ != null)
      .getOrElse {
        refuse(s"the key of a deletion is not a ${field.dataType.sql}: ${text.take(40)}")
        null
      }
  }

  private def objectOf(key: UTF8String): Array[Any] = {
    val values = read(key)
    if (values == null) refuse("the key of a deletion is not a JSON object with the key's columns")
    values
  }

  /** The key columns of a JSON object, or null if one of them is missing. */
  private def read(text: UTF8String): Array[Any] = {
    val row = reader.read(text)
    if (row == null) return null
    val values = keySchema.indices.map(i => row.get(i, keySchema(i).dataType)).toArray
    if (values.contains(null)) null else values
  }

  private def isScalar(text: String): Boolean =
    try {
      val parser = factory.createParser(text)
      try {
        val token = parser.nextToken()
        token != null && token.isScalarValue && token != JsonToken.VALUE_NULL &&
        parser.nextToken() == null
      } finally parser.close()
    } catch {
      case NonFatal(_) => false
    }
}
