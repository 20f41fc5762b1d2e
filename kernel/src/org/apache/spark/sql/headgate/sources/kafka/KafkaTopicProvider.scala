/** Owns Kafka topics as a Spark data source: Spark's own, with streams that are read more cheaply. */
package org.apache.spark.sql.headgate.sources.kafka

import java.util.{Map => JMap, Set => JSet}

import org.apache.spark.sql.connector.catalog.{SupportsRead, Table, TableCapability, TableProvider}
import org.apache.spark.sql.connector.expressions.Transform
import org.apache.spark.sql.connector.metric.{CustomMetric, CustomTaskMetric}
import org.apache.spark.sql.connector.read._
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream
import org.apache.spark.sql.headgate.spark.{KafkaPart, Sessions}
import org.apache.spark.sql.types.StructType
import org.apache.spark.sql.util.CaseInsensitiveStringMap

/** Takes the options of Spark's source and hands everything on to it but the reading of a stream. */
class KafkaTopicProvider extends TableProvider {
  private val sparks = KafkaPart.provider()

  override def inferSchema(options: CaseInsensitiveStringMap): StructType = sparks.inferSchema(options)

  override def getTable(schema: StructType, partitioning: Array[Transform],
      properties: JMap[String, String]): Table =
    sparks.getTable(schema, partitioning, properties) match {
      case table: SupportsRead => new KafkaTopicTable(table)
      case other => throw new IllegalStateException(s"a table that can be read was expected, got $other")
    }
}

object KafkaTopicProvider {
  /** `true`, or `false` for Spark's own reader in the tasks. */
  val Setting = "spark.headgate.kafka.keep.consumers"
}

private final class KafkaTopicTable(sparks: SupportsRead) extends Table with SupportsRead {
  override def name(): String = sparks.name
  override def schema(): StructType = sparks.columns().foldLeft(new StructType())((all, c) =>
    all.add(c.name, c.dataType, c.nullable))
  override def capabilities(): JSet[TableCapability] = sparks.capabilities
  override def newScanBuilder(options: CaseInsensitiveStringMap): ScanBuilder = {
    val builder = sparks.newScanBuilder(options)
    () => new KafkaTopicScan(builder.build())
  }
}

private final class KafkaTopicScan(sparks: Scan) extends Scan {
  override def readSchema(): StructType = sparks.readSchema
  override def description(): String = sparks.description
  override def columnarSupportMode(): Scan.ColumnarSupportMode = sparks.columnarSupportMode
  override def supportedCustomMetrics(): Array[CustomMetric] = sparks.supportedCustomMetrics
  override def reportDriverMetrics(): Array[CustomTaskMetric] = sparks.reportDriverMetrics
  override def toBatch(): Batch = sparks.toBatch
  override def toMicroBatchStream(checkpoint: String): MicroBatchStream =
    KafkaTopicStream(sparks.toMicroBatchStream(checkpoint),
      Sessions.setting(Sessions.active, KafkaTopicProvider.Setting).forall(_.toBoolean))
}
