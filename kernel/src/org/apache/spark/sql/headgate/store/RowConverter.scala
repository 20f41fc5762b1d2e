package org.apache.spark.sql.headgate.store

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{GenericInternalRow, UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.catalyst.util.{ArrayBasedMapData, ArrayData, GenericArrayData, MapData}
import org.apache.spark.sql.headgate.failures.{Coded, CodedArgumentException}
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._

/**
 * Rows of one struct type as rows of another, column by column of the same name, at any depth.
 * A column that is new is null, one that is gone is left out; a changed type is refused.
 */
object RowConverter {

  /** The result is good until the next call. */
  def between(from: StructType, to: StructType): UnsafeRow => UnsafeRow = {
    val (before, after) = (StoreSpec.plain(from), StoreSpec.plain(to))
    if (before == after) identity
    else {
      val convert = structs(before, after, "")
      val project = GeneratedCode.projection(after)
      row => project(convert(row).asInstanceOf[InternalRow])
    }
  }

  private def values(from: DataType, to: DataType, at: String): Any => Any = (from, to) match {
    case _ if from == to => identity
    case (f: StructType, t: StructType) => structs(f, t, at)
    case (f: ArrayType, t: ArrayType) => arrays(f.elementType, t.elementType, s"$at[]")
    case (f: MapType, t: MapType) =>
      val keys = arrays(f.keyType, t.keyType, s"$at.key")
      val items = arrays(f.valueType, t.valueType, s"$at.value")
      (v: Any) => {
        val map = v.asInstanceOf[MapData]
        new ArrayBasedMapData(keys(map.keyArray()).asInstanceOf[ArrayData],
          items(map.valueArray()).asInstanceOf[ArrayData])
      }
    case _ => throw new CodedArgumentException(Coded("STATE_TYPE", "text" ->
      s"column ${at.stripPrefix(".")} of the state was ${from.simpleString} and is ${to.simpleString} now"))
  }

  private def structs(from: StructType, to: StructType, at: String): Any => Any = {
    val old = numbered(from)
    val columns = numbered(to).zip(to).map { case (name, field) =>
      val i = old.indexOf(name)
      if (i < 0) (-1, NullType: DataType, identity[Any] _)
      else (i, from(i).dataType, values(from(i).dataType, field.dataType, s"$at.${field.name}"))
    }.toArray
    v => {
      val row = v.asInstanceOf[InternalRow]
      val made = new Array[Any](columns.length)
      columns.indices.foreach { c =>
        val (i, dataType, convert) = columns(c)
        if (i >= 0 && !row.isNullAt(i)) made(c) = convert(row.get(i, dataType))
      }
      new GenericInternalRow(made)
    }
  }

  /** Names with a count: a plan may have two columns of one name. */
  private def numbered(struct: StructType): Seq[(String, Int)] =
    struct.indices.map(i => (struct(i).name, struct.take(i).count(_.name == struct(i).name)))

  private def arrays(from: DataType, to: DataType, at: String): Any => Any =
    if (from == to) identity
    else {
      val convert = values(from, to, at)
      v => {
        val array = v.asInstanceOf[ArrayData]
        new GenericArrayData(Array.tabulate[Any](array.numElements()) { i =>
          if (array.isNullAt(i)) null else convert(array.get(i, from))
        })
      }
    }
}
