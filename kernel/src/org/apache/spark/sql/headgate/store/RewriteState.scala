/** Owns writing a step's state anew: for other partitions, another layout, or a step that is new. */
package org.apache.spark.sql.headgate.store

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path

import org.apache.spark.Partitioner
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.{DataFrame => ApiFrame, SparkSession => ApiSession}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.headgate.failures.{Coded, CodedArgumentException}
import org.apache.spark.sql.headgate.spark.{OpenForWriting, Session, Sessions, StateMetadata, StoreFiles}
import org.apache.spark.util.CompletionIterator

final class Rewritten(val ids: JList[JList[String]], val lost: Long)

/**
 * Reads all stores of a step at one version and writes them, as complete snapshots, at another.
 *
 * A task that is tried again writes files under another unique id: only the ids that are returned
 * count, and the files of the failed attempt are in nobody's way.
 */
object RewriteState {

  /**
   * @param source a Spark folder, or null: the new stores are empty
   * @param step for Spark's operator metadata; null: as it stands in the source's, if at all
   * @param job the compiled job, whose functions merge windows of keys that have become one; or null
   * @param drops whether state of such keys that cannot be merged may go
   * @return the unique ids of the new stores by partition, and how many rows of the main store became
   *         one with others or were dropped
   */
  def run(api: ApiSession, source: String, sourceVersion: Long, sourceIds: JList[JList[String]],
      operatorId: Long, step: String, oldLayouts: String, newLayouts: String, target: String,
      targetVersion: Long, partitions: Int, job: ApiFrame, drops: Boolean): Rewritten = {
    val session = Sessions.of(api)
    val stores = StoreSpec.parseAll(newLayouts)
    val old = if (source == null || oldLayouts == null) Nil else StoreSpec.parseAll(oldLayouts)
    val rows =
      if (old.isEmpty) session.sparkContext.parallelize(Seq.empty[(Int, Array[Byte])], 1)
      else read(session, StoreFiles.of(session, source, operatorId), sourceVersion,
        sourceIds.asScala.map(_.asScala.toSeq).toSeq, old, stores, partitions)
    val files = StoreFiles.of(session, target, operatorId)
    val merge = if (old.exists(_.asCame)) Some(KeyMerge.of(job, step, drops)) else None
    val written = rows.partitionBy(new Numbered(partitions)).mapPartitionsWithIndex { (p, rows) =>
      val (ids, lost) = write(files, stores, p, targetVersion, rows, merge)
      Iterator.single((p, ids, lost))
    }.collect().sortBy(_._1)
    writeMetadata(session, source, operatorId, step, stores, target, partitions)
    new Rewritten(written.map(_._2.asJava).toSeq.asJava, written.map(_._3).sum)
  }

  private def read(session: Session, files: StoreFiles, version: Long,
      ids: Seq[Seq[String]], old: Seq[StoreSpec], stores: Seq[StoreSpec],
      partitions: Int): RDD[(Int, Array[Byte])] = {
    ids.foreach(of => require(of.length == old.length,
      s"${of.length} ids of a partition's ${old.length} stores"))
    // a store that the new layout does not have is left out
    val kept = old.zipWithIndex.flatMap { case (spec, i) =>
      val to = stores.indexWhere(_.name == spec.name)
      if (to < 0) None else Some((spec, i, to))
    }
    kept.foreach { case (spec, _, to) => check(spec, stores(to)) }
    session.sparkContext.parallelize(ids.indices, ids.length).mapPartitions { it =>
      it.flatMap { p =>
        // what every partition has is read once
        kept.iterator.filter(p == 0 || !_._1.replicated).flatMap { case (spec, i, to) =>
          val partitionsOf = placesOf(stores(to), partitions)
          val convert = RowConverter.between(spec.valueSchema, stores(to).valueSchema)
          val open = files.read(spec, p, version, ids(p)(i))
          CompletionIterator[(Int, Array[Byte]), Iterator[(Int, Array[Byte])]](
            open.store.iterator().flatMap { pair =>
              val row = StoredRow.of(to, pair.key, convert(pair.value)).bytes
              partitionsOf(pair.key).map((_, row))
            }, open.close())
        }
      }
    }
  }

  private def placesOf(store: StoreSpec, partitions: Int): UnsafeRow => Iterator[Int] =
    if (store.replicated) _ => Iterator.range(0, partitions)
    else {
      val partitionOf = KeyPartition.function(store, partitions)
      key => Iterator.single(partitionOf(key))
    }

  private def check(from: StoreSpec, to: StoreSpec): Unit = {
    def types(s: StoreSpec) = StoreSpec.plain(s.keySchema).map(_.dataType)
    if (types(from) != types(to)) {
      throw new CodedArgumentException(Coded("STATE_TYPE", "text" ->
        (s"the key of the state was (${types(from).map(_.simpleString).mkString(", ")}) " +
          s"and is (${types(to).map(_.simpleString).mkString(", ")}) now")))
    }
    RowConverter.between(from.valueSchema, to.valueSchema) // refuses before anything is written
  }

  private def write(files: StoreFiles, stores: Seq[StoreSpec], partition: Int, version: Long,
      rows: Iterator[(Int, Array[Byte])], merge: Option[KeyMerge]): (Seq[String], Long) = {
    val open = new Array[OpenForWriting](stores.length)
    try {
      stores.indices.foreach(i => open(i) = files.write(stores(i), partition, version))
      val stored = rows.map { case (_, bytes) => new StoredRow(bytes) }
      val lost = merge match {
        case None =>
          stored.foreach { row =>
            val to = open(row.store)
            row.keyInto(to.key)
            row.valueInto(to.value)
            to.store.put(to.key, to.value)
          }
          0L
        case Some(m) => m.write(stores, open.map(_.store), stored)
      }
      (open.toSeq.map(_.commit()), lost)
    } finally open.foreach(o => if (o != null) o.close())
  }

  private def writeMetadata(session: Session, source: String, operatorId: Long, step: String,
      stores: Seq[StoreSpec], target: String, partitions: Int): Unit = {
    val hadoop = Sessions.hadoop(session)
    val name =
      if (step != null) Some(OperatorId.name(step))
      else Option(source).flatMap(s => StateMetadata.nameOf(new Path(s, "state"), operatorId, hadoop))
    StateMetadata.write(new Path(target, "state"), operatorId, name, stores.map(_.asWritten), partitions,
      hadoop)
  }

  /** Pairs go to the partition of their number. */
  private final class Numbered(val numPartitions: Int) extends Partitioner {
    override def getPartition(key: Any): Int = key.asInstanceOf[Int]
  }
}
