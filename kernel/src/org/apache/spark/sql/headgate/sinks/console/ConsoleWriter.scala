/** Owns a console sink's part of a task. */
package org.apache.spark.sql.headgate.sinks.console

import java.nio.charset.StandardCharsets.UTF_8

import scala.collection.mutable

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.json.{JsonBytes, JsonRowWriter}
import org.apache.spark.sql.headgate.sinks.core.{SinkMessage, SinkWriter}
import org.apache.spark.sql.types.StructType

/** The first rows of a batch as JSON, for the driver to print. */
final class ConsoleWriter(schema: StructType, timeZone: String) extends SinkWriter {
  private val json = new JsonRowWriter(schema, timeZone)
  private val bytes = new JsonBytes(1 << 12)
  private val lines = mutable.ArrayBuffer.empty[String]
  private var rows = 0L

  override def write(row: InternalRow): Unit = {
    if (rows < ConsoleWriter.Rows) {
      bytes.clear()
      json.write(row, bytes)
      lines += new String(bytes.array, 0, bytes.length, UTF_8)
    }
    rows += 1
  }

  override def finish(): Unit = ()
  override def messages: Seq[SinkMessage] = if (rows == 0) Nil else Seq(Shown(rows, lines.toSeq))
  override def abort(): Unit = ()
}

object ConsoleWriter {
  /** So many rows of a batch are printed. */
  val Rows = 20
}
