/** Owns whether a sink's rows fit a Delta table, and what becomes of its columns. */
package org.apache.spark.sql.headgate.sinks.delta

import java.util.Locale

import scala.util.Try

import org.apache.spark.sql.delta.actions.{Metadata => TableMetadata}
import org.apache.spark.sql.delta.schema.SchemaMergingUtils
import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}
import org.apache.spark.sql.headgate.sinks.core.RecordParts
import org.apache.spark.sql.types._

private final class DeltaSchemas(sink: String, options: DeltaSinkOptions) {

  /** The table as it takes these rows; throws if they do not fit and it may not be changed. */
  def fitted(table: TableMetadata, rows: StructType, isNew: Boolean = false): TableMetadata = {
    val data = DeltaSchemas.data(rows)
    if (isNew) table.copy(schemaString = data.json, partitionColumns = options.partitionBy,
      createdTime = Some(System.currentTimeMillis()))
    else {
      checkPartitions(table.partitionColumns)
      val columns = columnsOf(table.schema, data)
      if (columns == table.schema) table else table.copy(schemaString = columns.json)
    }
  }

  private def checkPartitions(found: Seq[String]): Unit = {
    def plain(names: Seq[String]) = names.map(_.toLowerCase(Locale.ROOT))
    if (options.partitionBy.nonEmpty && plain(options.partitionBy) != plain(found)) {
      val has = if (found.isEmpty) "no partitions" else s"partitions by ${found.mkString(", ")}"
      refuse(s"the table has $has, and the sink says ${options.partitionBy.mkString(", ")}")
    }
  }

  private def columnsOf(table: StructType, rows: StructType): StructType = {
    val known = table.map(f => f.name.toLowerCase(Locale.ROOT) -> f).toMap
    val (others, added) = rows.partition(f => known.contains(f.name.toLowerCase(Locale.ROOT)))
    val grown = others.flatMap { field =>
      val has = known(field.name.toLowerCase(Locale.ROOT))
      if (DeltaSchemas.bare(has.dataType) == field.dataType) None else Some(has -> grow(has, field))
    }
    val wrong = grown.collect { case (has, None) =>
      val is = rows.find(_.name.equalsIgnoreCase(has.name)).get.dataType
      s"${has.name} (${is.sql}; the table has ${has.dataType.sql})"
    }
    if (wrong.nonEmpty) refuse(s"these columns have another type: ${wrong.mkString(", ")}")
    if (added.nonEmpty && !options.evolve) {
      refuse(s"the table lacks ${added.map(f => s"${f.name} (${f.dataType.sql})").mkString(", ")}")
    }
    val larger = grown.collect { case (has, Some(field)) => has.name -> field }.toMap
    StructType(table.fields.map(f => larger.getOrElse(f.name, f)) ++ added)
  }

  /** The column with the fields within it that it lacks, if that is all. */
  private def grow(has: StructField, is: StructField): Option[StructField] =
    if (!options.evolve || !DeltaSchemas.hasFields(has.dataType)) None
    else Try(SchemaMergingUtils.mergeSchemas(StructType(Seq(has)), StructType(Seq(is))).head).toOption

  private def refuse(why: String): Nothing = throw new CodedStateException(
    Coded("DELTA_SCHEMA", "sink" -> sink, "path" -> options.path, "text" -> why))

  /** The rows' columns by the names that the table has for them. */
  def named(table: StructType, rows: StructType): StructType = {
    val names = table.fieldNames.map(name => name.toLowerCase(Locale.ROOT) -> name).toMap
    StructType(rows.map(f => f.copy(name = names.getOrElse(f.name.toLowerCase(Locale.ROOT), f.name))))
  }
}

private object DeltaSchemas {
  val Deleted: String = "__hg_" + RecordParts.Deleted

  /** The columns that are the table's, as it keeps them. */
  def data(rows: StructType): StructType =
    StructType(rows.filter(_.name != Deleted).map(f => StructField(f.name, bare(f.dataType))))

  /** A type without what is said of its parts; all of them may be null. */
  def bare(dataType: DataType): DataType = dataType match {
    case s: StructType => StructType(s.map(f => StructField(f.name, bare(f.dataType))))
    case a: ArrayType => ArrayType(bare(a.elementType))
    case m: MapType => MapType(bare(m.keyType), bare(m.valueType))
    case other => other
  }

  def hasFields(dataType: DataType): Boolean = dataType match {
    case _: StructType => true
    case a: ArrayType => hasFields(a.elementType)
    case m: MapType => hasFields(m.keyType) || hasFields(m.valueType)
    case _ => false
  }

  /** Columns by number: Parquet does not tell names apart that differ in case only. */
  def numbered(rows: StructType): StructType =
    StructType(rows.zipWithIndex.map { case (field, n) => field.copy(name = s"c$n") })

  def quoted(name: String): String = "`" + name.replace("`", "``") + "`"
}
