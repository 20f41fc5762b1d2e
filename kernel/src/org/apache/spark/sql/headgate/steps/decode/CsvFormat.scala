/** Owns values that are one line of CSV each. */
package org.apache.spark.sql.headgate.steps.decode

import java.io.StringReader

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.JsonNode

import org.apache.spark.sql.catalyst.csv.{CSVOptions, UnivocityParser}
import org.apache.spark.sql.catalyst.util.BadRecordException
import org.apache.spark.sql.headgate.json.Utf8
import org.apache.spark.sql.types.StructType
import org.apache.spark.unsafe.types.UTF8String

/** The columns stand in the line in the schema's order, and there are no others.
  *
  * @param options of Spark's own reader of CSV
  */
case class CsvFormat(options: Map[String, String]) extends ValueFormat {
  def decoder(columns: StructType, isText: Boolean, timeZone: String): ValueDecoder =
    new CsvValue(columns, options, isText, timeZone)
}

object CsvFormat extends FormatKind {
  override def name: String = "csv"

  override def of(root: JsonNode, columns: StructType): ValueFormat = {
    val options = Option(root.get("csv")).toSeq
      .flatMap(_.properties.asScala.map(e => e.getKey -> e.getValue.asText)).toMap
    // a quote inside is written twice, as RFC 4180 says; Spark's own default is a backslash
    val format = CsvFormat(Map("escape" -> options.getOrElse("quote", "\"")) ++ options)
    try format.decoder(columns, isText = true, "UTC") // a type that CSV cannot hold is refused here
    catch {
      case NonFatal(e) => throw new IllegalArgumentException(s"format csv: ${e.getMessage}")
    }
    format
  }
}

private final class CsvValue(
    columns: StructType, options: Map[String, String], isText: Boolean, timeZone: String)
  extends ValueDecoder {
  private val width = columns.length
  private val parser = new UnivocityParser(
    columns.asNullable, new CSVOptions(options, columnPruning = false, timeZone))

  override def read(value: UTF8String, out: Array[Any]): String =
    if (!isText && !Utf8.isValid(value)) ValueDecoder.NotText
    else try line(withoutLineEnd(value.toString), out)
    catch { case NonFatal(e) => invalid(e) }

  private def line(text: String, out: Array[Any]): String =
    if (text.isEmpty) "empty record"
    else if (text.indexOf('\n') >= 0 && hasMoreLines(text)) "more than one line"
    else try {
      parser.parse(text) match {
        case None => "empty record"
        case Some(row) =>
          var c = 0
          while (c < width) {
            out(c) = if (row.isNullAt(c)) null else row.get(c, columns(c).dataType)
            c += 1
          }
          null
      }
    } catch { case e: BadRecordException => sentence(text, e) }

  private def withoutLineEnd(text: String): String = text.stripSuffix("\n").stripSuffix("\r")

  /** A line break inside quotes is none; the parser's own `parseLine` passes over what follows one. */
  private def hasMoreLines(text: String): Boolean = {
    val tokenizer = parser.tokenizer
    tokenizer.beginParsing(new StringReader(text))
    try tokenizer.parseNext() != null && tokenizer.parseNext() != null
    finally tokenizer.stopParsing()
  }

  private def sentence(line: String, error: BadRecordException): String = {
    val tokens = Option(parser.tokenizer.parseLine(line)).fold(0)(_.length)
    if (tokens != width) s"not a line of $width fields: it has $tokens"
    else invalid(Option(error.getCause).getOrElse(error))
  }

  private def invalid(error: Throwable): String = {
    val text = Option(error.getMessage).getOrElse(error.getClass.getSimpleName)
    "not valid CSV: " + text.takeWhile(c => c != '\n' && c != '\r').take(CsvValue.MaxReason)
  }
}

private object CsvValue {
  val MaxReason = 180
}
