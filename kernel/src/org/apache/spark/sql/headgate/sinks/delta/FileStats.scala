/** Owns what a Delta table's log says of a file's rows, out of the file's own footer. */
package org.apache.spark.sql.headgate.sinks.delta

import java.time.{Instant, ZoneOffset}
import java.time.format.DateTimeFormatter
import java.time.temporal.ChronoUnit

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.apache.parquet.column.statistics.Statistics
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ParquetMetadata
import org.apache.parquet.hadoop.util.HadoopInputFile

import org.apache.spark.sql.delta.DeltaColumnMappingMode
import org.apache.spark.sql.delta.actions.{Metadata, Protocol}
import org.apache.spark.sql.delta.stats.{DeltaStatsColumnSpec, StatisticsCollection, StatsCollectionUtils, StatsCollector}
import org.apache.spark.sql.delta.util.JsonUtils
import org.apache.spark.sql.headgate.spark.{Session, Sessions}
import org.apache.spark.sql.types.{StructType, TimestampNTZType, TimestampType}

/** Delta's own writer computes it row by row. Its reader of footers leaves out the bounds of times. */
private final class FileStats(session: Session, metadata: Metadata, tableProtocol: Protocol) {
  private val hadoop = Sessions.hadoop(session)
  private val wanted = new WantedStats(session, metadata, tableProtocol)
  private val collector = StatsCollector(metadata.columnMappingMode, metadata.schema, wanted.statsSchema,
    "CORRECTED", ignoreMissingStats = true, Some(wanted.getDataSkippingStringPrefixLength))

  def of(file: Path): String = {
    val footer = footerOf(file)
    val (collected, _) = collector.collect(footer)
    val found = FileStats.Bounds.foldLeft(collected) { (stats, name) =>
      if (!stats.contains(name)) stats
      else stats.updated(name, FileStats.unbounded(footer).foldLeft[Any](stats(name))(FileStats.without))
    }
    val times = timesOf(footer)
    val withTimes = Seq("minValues" -> times.view.mapValues(_._1), "maxValues" -> times.view.mapValues(_._2))
      .foldLeft(found) { case (stats, (name, more)) =>
        val known = stats.getOrElse(name, Map.empty).asInstanceOf[Map[String, Any]]
        if (found.contains(name)) stats.updated(name, known ++ more) else stats
      }
    JsonUtils.toJson(withTimes + ("tightBounds" -> true))
  }

  private def footerOf(file: Path): ParquetMetadata = {
    val reader = ParquetFileReader.open(HadoopInputFile.fromPath(file, hadoop))
    try reader.getFooter finally reader.close()
  }

  /** First and last of the columns that are times. */
  private def timesOf(footer: ParquetMetadata): Map[String, (String, String)] = {
    val bounds = wanted.statsSchema.find(_.name == "minValues").map(_.dataType.asInstanceOf[StructType])
    val zones = bounds.toSeq.flatten.collect {
      case f if f.dataType == TimestampType => f.name -> "Z"
      case f if f.dataType == TimestampNTZType => f.name -> ""
    }.toMap
    val columns = footer.getBlocks.asScala.toSeq.flatMap(_.getColumns.asScala)
      .groupBy(_.getPath.toArray.toSeq)
    for ((Seq(name), parts) <- columns; zone <- zones.get(name);
        found = parts.map(_.getStatistics) if found.forall(s => s != null && !s.isEmpty);
        some = found.filter(_.hasNonNullValue) if some.nonEmpty) yield {
      val least = some.map(_.genericGetMin.asInstanceOf[Long]).min
      val most = some.map(_.genericGetMax.asInstanceOf[Long]).max
      name -> (FileStats.text(least, 0L, zone), FileStats.text(most, 999L, zone))
    }
  }
}

/** Of which columns the table keeps statistics. */
private final class WantedStats(override protected val spark: Session, metadata: Metadata,
    override protected val protocol: Protocol) extends StatisticsCollection {
  override def tableSchema: StructType = metadata.schema
  override def outputTableStatsSchema: StructType = metadata.schema
  override def outputAttributeSchema: StructType = metadata.schema
  override val statsColumnSpec: DeltaStatsColumnSpec =
    StatisticsCollection.configuredDeltaStatsColumnSpec(metadata)
  override def columnMappingMode: DeltaColumnMappingMode = metadata.columnMappingMode
  override def getDataSkippingStringPrefixLength: Int =
    StatsCollectionUtils.getDataSkippingStringPrefixLength(spark, metadata)
}

private object FileStats {
  private val Bounds = Seq("minValues", "maxValues")

  /** Columns of which some group of rows has no bounds, though it has values: not a number, or long texts.
    * The bounds of the others would be too narrow for the file.
    */
  private def unbounded(footer: ParquetMetadata): Seq[Seq[String]] =
    footer.getBlocks.asScala.toSeq.flatMap(_.getColumns.asScala).filter { part =>
      val of: Statistics[_] = part.getStatistics
      of == null || !of.hasNonNullValue && !(of.isNumNullsSet && of.getNumNulls == part.getValueCount)
    }.map(_.getPath.toArray.toSeq).distinct

  private def without(bounds: Any, column: Seq[String]): Any = bounds match {
    case of: Map[_, _] =>
      val known = of.asInstanceOf[Map[String, Any]]
      if (column.length == 1) known - column.head
      else known.get(column.head).fold(known)(b => known.updated(column.head, without(b, column.tail)))
    case other => other
  }

  private val Millis = DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS").withZone(ZoneOffset.UTC)

  /** Bounds have milliseconds: the lower one is rounded down, the upper one up. */
  private def text(micros: Long, more: Long, zone: String): String =
    Millis.format(Instant.EPOCH.plus(Math.floorDiv(micros + more, 1000L), ChronoUnit.MILLIS)) + zone
}
