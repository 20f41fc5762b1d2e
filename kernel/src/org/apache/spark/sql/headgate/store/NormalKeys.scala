/** Owns the form of keys in which values that Spark takes for equal have the same bytes. */
package org.apache.spark.sql.headgate.store

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types._

/**
 * 0.0 and -0.0 are one key, and so are all NaN, also inside structs and arrays: as in Spark's own
 * groups and joins, whose rule makes them so. State is found by the bytes of a key.
 *
 * Spark's hashes take them for one already, so that a key's partition is the same in either form.
 */
object NormalKeys {
  /** Whether values of a type have several forms. */
  def concern(t: DataType): Boolean = t match {
    case FloatType | DoubleType => true
    case s: StructType => s.exists(f => concern(f.dataType))
    case a: ArrayType => concern(a.elementType)
    case _ => false
  }

  def of(key: Expression): Expression =
    if (concern(key.dataType)) NormalizeFloatingNumbers.normalize(key) else key

  /** The same columns, of which those with these names are in normal form. */
  def columns(all: Seq[Attribute], names: Set[String]): Seq[NamedExpression] =
    all.map(a => if (names.contains(a.name)) Alias(of(a), a.name)() else a)

  /** A store's full key with the columns that decide its partition in normal form. */
  def projection(spec: StoreSpec): UnsafeProjection =
    GeneratedCode.projection(spec.keySchema.indices.map { i =>
      val column = BoundReference(i, spec.keySchema(i).dataType, nullable = true)
      if (spec.partitionBy.contains(i)) of(column) else column
    })
}
