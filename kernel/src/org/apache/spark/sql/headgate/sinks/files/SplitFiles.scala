/** Owns a task's rows as several files: by the values of some columns, and by how many rows a file has. */
package org.apache.spark.sql.headgate.sinks.files

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.catalog.ExternalCatalogUtils
import org.apache.spark.sql.catalyst.expressions.{BoundReference, Cast, Expression}
import org.apache.spark.sql.headgate.sinks.core.{SinkMessage, SinkWriter, Staged, StagedFile}
import org.apache.spark.sql.headgate.spark.GeneratedCode
import org.apache.spark.sql.types.{StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String

/** A staged file and the folder within the batch's in which it is to be; none for the batch's own. */
private[files] case class Placed(folder: String, file: Staged) extends SinkMessage

/** How a sink's rows are spread over files.
  *
  * @param schema of the rows
  * @param by the columns whose values name folders, as Hive and Spark do; they are not in the files
  * @param mostRows of a file; 0 if there is no end
  */
private[files] case class Splitting(schema: StructType, by: Seq[String], mostRows: Long, timeZone: String) {
  def isNone: Boolean = by.isEmpty && mostRows == 0

  /** What is in the files. */
  def stored: StructType = StructType(schema.filterNot(f => by.contains(f.name)))

  private[files] def values: Seq[Expression] =
    by.map(name => Cast(column(schema.fieldIndex(name)), StringType, Some(timeZone)))

  private[files] def rest: Seq[Expression] =
    schema.indices.filterNot(i => by.contains(schema(i).name)).map(column)

  private def column(i: Int): Expression = BoundReference(i, schema(i).dataType, schema(i).nullable)
}

/** @param open makes a file, by its number in the task */
private final class SplitFiles(splitting: Splitting, open: Int => StagedFile) extends SinkWriter {
  private final class Part(val folder: String, val file: StagedFile, var rows: Long)

  private val values = splitting.values.toArray
  private val rest = GeneratedCode.projection(splitting.rest)
  private val parts = mutable.LinkedHashMap.empty[String, Part]
  private val full = mutable.ArrayBuffer.empty[Part]

  override def write(row: InternalRow): Unit = {
    val part = partOf(folderOf(row))
    part.file.write(rest(row))
    part.rows += 1
    if (part.rows == splitting.mostRows) close(part)
  }

  private def folderOf(row: InternalRow): String = values.indices.map { i =>
    val value = values(i).eval(row).asInstanceOf[UTF8String]
    ExternalCatalogUtils.getPartitionPathString(splitting.by(i), if (value == null) null else value.toString)
  }.mkString("/")

  private def partOf(folder: String): Part = parts.getOrElse(folder, {
    // each open file has buffers: the one that is open longest makes room, and may get a second file
    if (parts.size == SplitFiles.MostOpen) close(parts.head._2)
    val part = new Part(folder, open(full.length + parts.size), 0L)
    parts(folder) = part
    part
  })

  private def close(part: Part): Unit = {
    parts -= part.folder
    full += part
    part.file.finish()
  }

  override def finish(): Unit = parts.values.toSeq.foreach(close)

  override def messages: Seq[SinkMessage] = full.toSeq.flatMap { part =>
    part.file.messages.collect { case s: Staged => Placed(part.folder, s) }
  }

  override def abort(): Unit = (full.toSeq ++ parts.values).foreach(_.file.abort())
}

private object SplitFiles {
  private val MostOpen = 64
}
