package org.apache.spark.sql.headgate.store

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}

import org.apache.spark.sql.headgate.spark.{KeyLayout, StoreShape}
import org.apache.spark.sql.types._

/**
 * One RocksDB store of a step, in every partition.
 *
 * @param partitionBy which columns of the key decide the partition, in the order they are hashed
 * @param asCame      whether it was written before keys were brought into normal form
 * @param replicated  whether every partition has all of it; who reads takes the first
 */
case class StoreSpec(name: String, keySchema: StructType, valueSchema: StructType,
    layout: KeyLayout, partitionBy: Seq[Int], asCame: Boolean = false, replicated: Boolean = false)
  extends StoreShape {

  /** Whether its keys have floating numbers in them, of which several are one key. */
  def hasFloats: Boolean = partitionBy.exists(i => NormalKeys.concern(keySchema(i).dataType))

  /** With the types as Spark's own files have them. */
  def asWritten: StoreSpec =
    copy(keySchema = StoreSpec.plain(keySchema), valueSchema = StoreSpec.plain(valueSchema))

  /** The layout as it stands in graph.json. */
  def toJson: ObjectNode = {
    val json = JsonNodeFactory.instance.objectNode()
    json.put("name", name)
    json.set[JsonNode]("key", StoreSpec.mapper.readTree(StoreSpec.plain(keySchema).json))
    json.set[JsonNode]("value", StoreSpec.mapper.readTree(StoreSpec.plain(valueSchema).json))
    layout match {
      case KeyLayout.Plain => json.put("encoder", "plain").putNull("columns")
      case KeyLayout.Prefix(columns) => json.put("encoder", "prefix").put("columns", columns)
      case KeyLayout.Range(columns) =>
        val ordinals = json.put("encoder", "range").putArray("columns")
        columns.foreach(ordinals.add(_))
      case KeyLayout.Time => json.put("encoder", "time").putNull("columns")
    }
    val by = json.putArray("partition_by")
    partitionBy.foreach(by.add(_))
    if (hasFloats && !asCame) json.put(StoreSpec.Floats, "normal")
    if (replicated) json.put(StoreSpec.Replicated, true)
    json
  }
}

object StoreSpec {
  private val mapper = new ObjectMapper()
  private val Floats = "floats"
  private val Replicated = "replicated"

  def parse(json: String): StoreSpec = of(mapper.readTree(json))
  def parseAll(json: String): Seq[StoreSpec] = mapper.readTree(json).elements.asScala.map(of).toSeq

  private def of(json: JsonNode): StoreSpec = {
    def struct(field: String) = DataType.fromJson(json.get(field).toString).asInstanceOf[StructType]
    def numbers(field: String) = json.get(field).elements.asScala.map(_.asInt).toSeq
    val key = struct("key")
    val layout = json.get("encoder").asText match {
      case "plain" => KeyLayout.Plain
      case "prefix" => KeyLayout.Prefix(json.get("columns").asInt)
      case "range" => KeyLayout.Range(numbers("columns"))
      case "time" => KeyLayout.Time
      case other => throw new IllegalArgumentException(s"no key encoder '$other'")
    }
    val spec = StoreSpec(json.get("name").asText, key, struct("value"), layout, numbers("partition_by"))
    spec.copy(asCame = spec.hasFloats && !json.has(Floats), replicated = json.has(Replicated))
  }

  /**
   * The type with everything nullable and without comments: what a row's bytes depend on. The
   * optimizer may know more about nulls in one plan than in the next, for the same state.
   */
  def plain(schema: StructType): StructType = plainType(schema).asInstanceOf[StructType]

  private def plainType(t: DataType): DataType = t match {
    case s: StructType => StructType(s.map(f => StructField(f.name, plainType(f.dataType))))
    case a: ArrayType => ArrayType(plainType(a.elementType))
    case m: MapType => MapType(plainType(m.keyType), plainType(m.valueType))
    case other => other
  }
}
