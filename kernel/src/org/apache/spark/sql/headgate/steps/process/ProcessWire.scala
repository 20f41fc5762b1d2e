package org.apache.spark.sql.headgate.steps.process

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.types._

/** The columns to Python and from it: headgate/process/wire.py, worker.py and writer.py. */
case class ProcessWire(to: StructType, from: StructType) {
  def at(name: String): Int = from.fieldIndex(name)
}

object ProcessWire {
  // columns to Python, before those of lists, maps and rows
  val Flag = 0; val Input = 1; val Number = 2; val Key = 3; val State = 4; val Large = 5; val Before = 6
  // the first row of a key, without state or with it
  val First: Byte = 1; val FirstWithState: Byte = 2
  // instead of the number of an input
  val Timers: Byte = -1; val Watermark: Byte = -2; val Clock: Byte = -3; val Port: Byte = -4; val Secret: Byte = -5
  // from Python, instead of the number of an output
  val Put = -1; val Delete = -2; val Count = -3; val PutNew = -4

  def of(spec: ProcessSpec, keys: Seq[Attribute], rows: Seq[Attribute]): ProcessWire = {
    val key = StructType(keys.zipWithIndex.map { case (k, i) => StructField(s"key$i", k.dataType) })
    val times = StructType(spec.main.drop(spec.firstTime))
    def all(parts: Seq[(String, DataType)]) =
      StructType(parts.map { case (n, t) => StructField(n, t) })
    val to = Seq("flag" -> ByteType, "input" -> ByteType, "number" -> LongType, "key" -> key,
      "state" -> spec.main, "large" -> LongType) ++
      spec.lists.zipWithIndex.map { case (s, i) => s"l$i" -> ArrayType(s.value) } ++
      spec.maps.zipWithIndex.map { case (s, i) => s"m$i" -> MapType(s.key.get, s.value) } ++
      rows.zipWithIndex.map { case (r, i) => s"r$i" -> r.dataType }
    val from = Seq("kind" -> ByteType, "name" -> StringType, "number" -> LongType, "key" -> key,
      "state" -> spec.main) ++
      (if (times.isEmpty) Nil else Seq("old" -> times)) ++
      spec.lists.zipWithIndex.map { case (s, i) =>
        s"l$i" -> all(Seq("cleared" -> BooleanType, "first" -> LongType, "added" -> ArrayType(s.value)))
      } ++
      spec.maps.zipWithIndex.map { case (s, i) =>
        s"m$i" -> all(Seq("cleared" -> BooleanType, "put" -> MapType(s.key.get, s.value),
          "removed" -> ArrayType(s.key.get)))
      } ++
      spec.outputs.zipWithIndex.map { case (o, i) => s"o$i" -> o }
    ProcessWire(all(to), all(from))
  }
}
