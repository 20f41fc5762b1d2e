/** Owns Debezium's envelopes: a change of a database's row, with the row before and after it. */
package org.apache.spark.sql.headgate.steps.decode

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.registry.RegistryAccess
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** Envelopes as JSON, alone or as the payload beside their schema. */
case object DebeziumJsonFormat extends ValueFormat with FormatKind {
  override def name: String = "debezium-json"
  override def of(root: JsonNode, columns: StructType): ValueFormat = this

  override def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder = {
    val envelope = Envelope.schema(columns)
    new Envelopes(columns,
      new JsonValue(envelope.add("payload", envelope), isText, timeZone))
  }

  override def keys(spec: DecodeSpec, isText: Boolean, timeZone: String): KeyReader =
    new EnvelopeKeys(spec, keys =>
      new JsonValue(keys.add("payload", keys), isText, timeZone), hasPayload = true)
}

/** Envelopes as Avro, with the ids of their schemas in a registry. */
case class DebeziumAvroFormat(registry: RegistryAccess) extends ValueFormat {
  override def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder =
    new Envelopes(columns, new RegisteredAvro(registry, None, Envelope.schema(columns)))

  override def keys(spec: DecodeSpec, isText: Boolean, timeZone: String): KeyReader =
    new EnvelopeKeys(spec, new RegisteredAvro(registry, None, _), hasPayload = false)
}

object DebeziumAvroFormat extends FormatKind {
  override def name: String = "debezium-avro"
  override def of(root: JsonNode, columns: StructType): ValueFormat =
    DebeziumAvroFormat(RegistryAccess.of(root.get("registry")).getOrElse(
      throw new IllegalArgumentException("debezium-avro needs a registry")))
}

private object Envelope {
  val Before = 0
  val After = 1
  val Op = 2
  val Payload = 3

  /** PostgreSQL does not send a large value (TOAST) that did not change; Debezium writes this instead. */
  val Unavailable: UTF8String = UTF8String.fromString("__debezium_unavailable_value")

  /** What is read of an envelope; where it came from (`source`, `ts_ms`) is not. */
  def schema(columns: StructType): StructType =
    new StructType().add("before", columns).add("after", columns).add("op", StringType)
}

/** @param parts reads before, after and op, and perhaps the payload that has them */
private final class Envelopes(columns: StructType, parts: ValueDecoder) extends ValueDecoder {
  import Envelope._

  private val width = columns.length
  private val parsed = new Array[Any](4)
  private val texts = columns.indices.filter(columns(_).dataType.isInstanceOf[StringType]).toArray
  private var isDeletion = false

  override def deletes: Boolean = isDeletion

  override def read(value: UTF8String, out: Array[Any]): String = {
    parsed.indices.foreach(parsed(_) = null)
    isDeletion = false
    val why = parts.read(value, parsed)
    if (why != null) why
    else parsed(Payload) match {
      case payload: InternalRow => taken(
        op(if (payload.isNullAt(Op)) null else payload.getUTF8String(Op)),
        row(payload, Before), row(payload, After), out)
      case _ => taken(op(parsed(Op)), parsed(Before), parsed(After), out)
    }
  }

  private def op(text: Any): String = if (text == null) null else text.toString

  private def row(payload: InternalRow, at: Int): Any =
    if (payload.isNullAt(at)) null else payload.getStruct(at, width)

  private def taken(op: String, before: Any, after: Any, out: Array[Any]): String = op match {
    case "c" | "r" | "u" =>
      if (after == null) s"a change of op '$op' has no row in 'after'"
      else {
        val row = after.asInstanceOf[InternalRow]
        val c = texts.indexWhere(c => !row.isNullAt(c) && row.getUTF8String(c) == Unavailable)
        if (c < 0) copy(row, out)
        else s"the database did not send the column '${columns(texts(c)).name}', as it did not change: " +
          "set REPLICA IDENTITY FULL for the table"
      }
    case "d" =>
      isDeletion = true
      // a table without a replica identity has none: then the record's key says which row it is
      if (before == null) null else copy(before.asInstanceOf[InternalRow], out)
    case "t" => "the table was emptied (op 't'): there is no key whose rows could be deleted"
    case null => "not Debezium's envelope: it has no 'op'"
    case other => s"not Debezium's envelope: op must be c, r, u, d or t, not '${other.take(20)}'"
  }

  private def copy(row: InternalRow, out: Array[Any]): String = {
    var c = 0
    while (c < width) {
      out(c) = if (row.isNullAt(c)) null else row.get(c, columns(c).dataType)
      c += 1
    }
    null
  }
}

/** The key of an envelope is an object with the columns of the database's key. */
private final class EnvelopeKeys(
    spec: DecodeSpec, decoder: StructType => ValueDecoder, hasPayload: Boolean)
  extends KeyReader(spec) {
  private val width = keySchema.length
  private lazy val reader = decoder(keySchema.asNullable)

  override protected def values(key: UTF8String): Array[Any] = {
    val out = new Array[Any](width + 1)
    val why = reader.read(key, out)
    val found = out(width) match {
      case payload: InternalRow if hasPayload =>
        Array.tabulate[Any](width)(i =>
          if (payload.isNullAt(i)) null else payload.get(i, keySchema(i).dataType))
      case _ => out.take(width)
    }
    if (why != null) {
      refuse(s"the key of a deletion: $why")
      null
    } else if (found.contains(null)) {
      refuse(s"the key of a deletion has no '${keySchema(found.indexOf(null)).name}'")
      null
    } else found
  }
}
