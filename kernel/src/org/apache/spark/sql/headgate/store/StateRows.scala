/** Owns reading a step's state as a DataFrame of partition, key and value. */
package org.apache.spark.sql.headgate.store

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame => ApiFrame, SparkSession => ApiSession}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.spark.{Frames, GeneratedCode, KeyLayout, ReadStateStore, Session, Sessions, StoreFiles, StoredPair}
import org.apache.spark.sql.types._
import org.apache.spark.util.CompletionIterator

object StateRows {

  /** All rows of one store at a version; `partitions` null: of all partitions. */
  def rows(api: ApiSession, folder: String, operatorId: Long, layout: String, version: Long,
      ids: JList[String], partitions: JList[Integer]): ApiFrame = {
    val session = Sessions.of(api)
    val spec = StoreSpec.parse(layout)
    val all = if (spec.replicated) ids.asScala.indices.take(1) else ids.asScala.indices
    val wanted = Option(partitions).map(_.asScala.map(_.intValue).toSeq).getOrElse(all)
    wanted.foreach(p => require(p >= 0 && p < ids.size, s"no partition $p of ${ids.size}"))
    read(session, folder, operatorId, spec, version, ids.asScala.toSeq, wanted)(
      _ => _.iterator())
  }

  /**
   * The rows of one key: of the row in `key`, whose columns are the store's partition_by columns.
   * Only the partition that the key belongs to is opened.
   */
  def get(api: ApiSession, folder: String, operatorId: Long, layout: String, version: Long,
      ids: JList[String], key: ApiFrame): ApiFrame = {
    val session = Sessions.of(api)
    val spec = StoreSpec.parse(layout)
    val row = keyRow(key, spec)
    val partition = if (spec.replicated) 0 else KeyPartition.of(row, spec, ids.size)
    val exact = spec.partitionBy == spec.keySchema.indices
    read(session, folder, operatorId, spec, version, ids.asScala.toSeq, Seq(partition)) { spec =>
      spec.layout match {
        case KeyLayout.Plain if exact => store =>
          val value = store.get(row)
          if (value == null) Iterator.empty else Iterator(new StoredPair(row, value))
        case KeyLayout.Prefix(columns) if spec.partitionBy == (0 until columns) =>
          _.prefixScan(row)
        case _ =>
          val keyOf = KeyPartition.columns(spec)
          store => store.iterator().filter(pair => keyOf(pair.key) == row)
      }
    }
  }

  private def keyRow(key: ApiFrame, spec: StoreSpec): UnsafeRow = {
    val types = spec.partitionBy.map(StoreSpec.plain(spec.keySchema)(_).dataType)
    val got = StoreSpec.plain(key.schema).map(_.dataType)
    require(got == types, s"the key is (${types.map(_.simpleString).mkString(", ")}), " +
      s"not (${got.map(_.simpleString).mkString(", ")})")
    val rows = Frames.collect(key)
    require(rows.length == 1, s"a key is one row, not ${rows.length}")
    val columns = types.zipWithIndex.map { case (t, i) => BoundReference(i, t, nullable = true) }
    GeneratedCode.projection(if (spec.asCame) columns else columns.map(NormalKeys.of)).apply(rows.head).copy()
  }

  private def read(session: Session, folder: String, operatorId: Long, spec: StoreSpec,
      version: Long, ids: Seq[String], partitions: Seq[Int])(
      pairsOf: StoreSpec => ReadStateStore => Iterator[StoredPair]): ApiFrame = {
    val files = StoreFiles.of(session, folder, operatorId)
    val rdd: RDD[InternalRow] =
      if (partitions.isEmpty) session.sparkContext.emptyRDD
      else session.sparkContext.parallelize(partitions, partitions.length).mapPartitions { it =>
        val pairs = pairsOf(spec)
        it.flatMap { p =>
          val open = files.read(spec, p, version, ids(p))
          val row = new GenericInternalRow(3)
          CompletionIterator[InternalRow, Iterator[InternalRow]](
            pairs(open.store).map { pair =>
              row.update(0, p); row.update(1, pair.key); row.update(2, pair.value)
              row
            }, open.close())
        }
      }
    Frames.ofRows(session, rdd, StructType(Seq(
      StructField("partition", IntegerType, nullable = false),
      StructField("key", StoreSpec.plain(spec.keySchema), nullable = false),
      StructField("value", StoreSpec.plain(spec.valueSchema), nullable = false))))
  }
}
