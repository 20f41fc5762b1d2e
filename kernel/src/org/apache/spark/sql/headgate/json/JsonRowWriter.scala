/** Owns the fast way out: rows as JSON bytes, exactly as Spark's to_json writes them. */
package org.apache.spark.sql.headgate.json

import java.io.CharArrayWriter
import java.nio.charset.StandardCharsets.UTF_8

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, SpecializedGetters}
import org.apache.spark.sql.catalyst.json.{JacksonGenerator, JSONOptions}
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._

/** Writes rows of a struct type as JSON objects, null fields left out, from column `from` on.
  *
  * Numbers, booleans, strings, structs and arrays are written here; any other value (dates,
  * timestamps, decimals, maps, binary, intervals, variants) goes through Spark's JacksonGenerator.
  * One instance serves one task.
  */
final class JsonRowWriter(schema: StructType, timeZone: String, from: Int = 0) {
  import JsonRowWriter._

  private val root = new StructValue(schema, from)

  def write(row: InternalRow, out: JsonBytes): Unit = root.fields(row, out)

  /** A value that takes more than one call: everything that has parts, or is left to Spark. */
  private abstract class Value {
    def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit
  }

  private final class StructValue(struct: StructType, first: Int) extends Value {
    private val count = struct.length
    private val kinds = struct.fields.map(f => kindOf(f.dataType))
    private val values = struct.fields.map(f => valueOf(f.dataType))
    // With the comma before the name; the first field that is there starts one byte later.
    private val names = struct.fieldNames.map(nameBytes)

    def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit =
      fields(row.getStruct(i, count), out)

    def fields(row: InternalRow, out: JsonBytes): Unit = {
      out.byte('{')
      var skip = 1
      var i = first
      while (i < count) {
        if (!row.isNullAt(i)) {
          val name = names(i)
          out.raw(name, skip, name.length - skip)
          skip = 0
          scalarOr(kinds(i), values(i), row, i, out)
        }
        i += 1
      }
      out.byte('}')
    }
  }

  private final class ArrayValue(elementType: DataType) extends Value {
    private val kind = kindOf(elementType)
    private val element = valueOf(elementType)

    def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      val array: ArrayData = row.getArray(i)
      val count = array.numElements()
      out.byte('[')
      var e = 0
      while (e < count) {
        if (e > 0) out.byte(',')
        if (array.isNullAt(e)) out.appendNull() else scalarOr(kind, element, array, e, out)
        e += 1
      }
      out.byte(']')
    }
  }

  /** A value as the only field of an object that Spark writes; the object around it is cut off. */
  private final class SparkValue(dataType: DataType) extends Value {
    private val chars = new CharArrayWriter()
    private val generator = new JacksonGenerator(
      StructType(Seq(StructField("v", dataType))), chars,
      new JSONOptions(Map.empty[String, String], timeZone))
    private val holder = new GenericInternalRow(1)

    def write(row: SpecializedGetters, i: Int, out: JsonBytes): Unit = {
      holder.update(0, row.get(i, dataType))
      generator.write(holder)
      generator.flush()
      val bytes = chars.toString.getBytes(UTF_8)
      chars.reset()
      out.raw(bytes, Before, bytes.length - Before - 1)
    }
  }

  /** The parts of a type that [[scalarOr]] does not write by itself, or null. */
  private def valueOf(dataType: DataType): Value = dataType match {
    case s: StructType => new StructValue(s, 0)
    case ArrayType(element, _) => new ArrayValue(element)
    case other => if (kindOf(other) == KOther) new SparkValue(other) else null
  }

  // One switch instead of a virtual call a field: a row has many fields, and most are scalars.
  private def scalarOr(
      kind: Int, value: Value, row: SpecializedGetters, i: Int, out: JsonBytes): Unit =
    (kind: @annotation.switch) match {
      case KLong => out.appendLong(row.getLong(i))
      case KString => out.appendString(row.getUTF8String(i))
      case KDouble => out.appendDouble(row.getDouble(i))
      case KInt => out.appendLong(row.getInt(i))
      case KBoolean => out.appendBoolean(row.getBoolean(i))
      case KFloat => out.appendFloat(row.getFloat(i))
      case KShort => out.appendLong(row.getShort(i))
      case KByte => out.appendLong(row.getByte(i))
      case _ => value.write(row, i, out)
    }
}

object JsonRowWriter {
  private final val KOther = 0
  private final val KLong = 1
  private final val KString = 2
  private final val KDouble = 3
  private final val KInt = 4
  private final val KBoolean = 5
  private final val KFloat = 6
  private final val KShort = 7
  private final val KByte = 8

  private def kindOf(dataType: DataType): Int = dataType match {
    case LongType => KLong
    case _: StringType => KString
    case DoubleType => KDouble
    case IntegerType => KInt
    case BooleanType => KBoolean
    case FloatType => KFloat
    case ShortType => KShort
    case ByteType => KByte
    case _ => KOther
  }

  private val Before = """{"v":""".length

  private def nameBytes(name: String): Array[Byte] = {
    val out = new JsonBytes(name.length + 16)
    out.byte(',')
    out.appendString(org.apache.spark.unsafe.types.UTF8String.fromString(name))
    out.byte(':')
    java.util.Arrays.copyOf(out.array, out.length)
  }
}
