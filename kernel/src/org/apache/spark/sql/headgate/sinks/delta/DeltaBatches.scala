/** Owns committing the batches of one sink to its Delta table. */
package org.apache.spark.sql.headgate.sinks.delta

import java.nio.file.Files

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.delta.{DeltaLog, DeltaOperations, OptimisticTransaction, Snapshot}
import org.apache.spark.sql.delta.actions.{Action, AddFile, SetTransaction}
import org.apache.spark.sql.functions.col
import org.apache.spark.sql.headgate.commit.{DiskFiles, Fence, HomeFiles, Marker, Places}
import org.apache.spark.sql.headgate.sinks.core.Staged
import org.apache.spark.sql.headgate.spark.{FileFormats, Session, Sessions}
import org.apache.spark.sql.streaming.OutputMode
import org.apache.spark.sql.types.StructType

/** What tasks have to know of a table.
  *
  * @param out the last batch that it has
  * @param adopted whether their files are to be the table's own
  * @param stored the columns of these files
  */
private case class TablePlan(out: Option[Long], adopted: Boolean, stored: StructType)

/** One sink in one batch.
  *
  * @param appId who writes: Delta keeps the last version of each
  * @param fsync whether a commit survives a power cut; Delta itself syncs nothing
  */
private final class DeltaBatches(
    session: Session, sink: String, options: DeltaSinkOptions, appId: String, fsync: Boolean) {

  DeltaSettings.complete(session)
  private val log = DeltaLog.forTable(session, new Path(options.path))
  private val schemas = new DeltaSchemas(sink, options)

  /** The last batch of this writer that the table has. */
  def lastBatch: Option[Long] = lastIn(log.update())

  /** Out of what the last commit has noted, if its writer did: else Delta puts the whole table together. */
  private def lastIn(table: Snapshot): Option[Long] =
    if (table.version < 0) None
    else table.checksumOpt.flatMap(_.setTransactions).map(_.map(t => t.appId -> t.version).toMap)
      .getOrElse(table.transactions).get(appId)

  /** What tasks have to know before they write; throws if the rows do not fit the table. */
  def plan(rows: StructType): TablePlan = {
    val table = log.update()
    val isNew = table.version < 0
    if (!isNew) schemas.fitted(table.metadata, rows)
    val adopted = options.key.isEmpty && (if (isNew) options.partitionBy.isEmpty
      else PlainTable.is(table.metadata, table.protocol, session))
    TablePlan(lastIn(table), adopted,
      if (adopted) schemas.named(table.schema, rows) else DeltaSchemas.numbered(rows))
  }

  /** Commits a batch, unless the table has it.
    *
    * @param at where the tasks have written
    */
  def commit(number: Long, rows: StructType, plan: TablePlan, at: HomeFiles, staged: Seq[Staged]): Unit = {
    val txn = new WriterTransaction(log, appId)
    val before = txn.readVersion
    if (lastIn(txn.snapshot).exists(last => Marker(last).holds(Marker(number), sink))) delete(at, staged)
    else {
      Fence.recheck()
      val change = prepared(txn, rows)
      val files = staged.map(f => f -> at.size(f.name))
      val bytes = files.map(_._2).sum
      val few = staged.length <= Sizes.most(bytes)
      if (plan.adopted && few && takes(txn, rows, plan.stored)) adopt(txn, number, at, files)
      else {
        change.foreach(txn.commit(Nil, _))
        write(number, FileFormats.parquetRows(copy(number),
          files.map { case (f, size) => at.path(f.name) -> size }, plan.stored, rows), Sizes.wanted(bytes))
        delete(at, staged)
      }
      if (fsync && Places.isLocal(options.path)) sync(before)
    }
  }

  private def delete(at: HomeFiles, staged: Seq[Staged]): Unit = staged.foreach(f => at.delete(f.name))

  /** Whether the table still takes the files as they are: another writer may have added a constraint. */
  private def takes(txn: OptimisticTransaction, rows: StructType, stored: StructType): Boolean =
    PlainTable.is(txn.metadata, txn.protocol, session) &&
      schemas.named(txn.metadata.schema, rows) == stored

  /** Makes the table in a transaction, or gives it the columns that it lacks; what that is, if it is anything. */
  private def prepared(txn: OptimisticTransaction, rows: StructType): Option[DeltaOperations.Operation] = {
    val isNew = txn.readVersion < 0
    val old = txn.metadata
    val metadata = schemas.fitted(old, rows, isNew)
    if (!isNew && metadata.schemaString == old.schemaString) None
    else {
      txn.updateMetadata(metadata)
      Some(if (isNew) DeltaOperations.CreateTable(txn.metadata, isManaged = false)
        else DeltaOperations.UpdateSchema(old.schema, metadata.schema))
    }
  }

  private def adopt(
      txn: OptimisticTransaction, number: Long, at: HomeFiles, files: Seq[(Staged, Long)]): Unit = {
    val stats = new FileStats(session, txn.metadata, txn.protocol)
    val now = System.currentTimeMillis()
    val added: Seq[Action] = files.map { case (f, size) =>
      AddFile(f.name, Map.empty, size, now, dataChange = true, stats = stats.of(at.path(f.name)))
    }
    txn.commit(SetTransaction(appId, number, Some(now)) +: added,
      DeltaOperations.StreamingUpdate(OutputMode.Append, appId, number))
  }

  private def write(number: Long, rows: DataFrame, files: Int): Unit =
    if (options.key.isEmpty) append(number, rows, files)
    else new DeltaMerge(options, rows.schema.fieldNames.toSeq).run(rows, files)

  private def append(number: Long, rows: DataFrame, files: Int): Unit = {
    val by = log.update().metadata.partitionColumns.map(name => col(DeltaSchemas.quoted(name)))
    val few = if (by.isEmpty) rows.coalesce(files) else rows.repartition(files, by: _*)
    few.write.format("delta").mode("append")
      .option("txnAppId", appId).option("txnVersion", number.toString).save(options.path)
  }

  /** A session whose commands belong to the batch: Delta leaves out one that it has. */
  private def copy(number: Long): Session = {
    val own = Sessions.copyOf(session)
    DeltaMerge.prepare(own)
    if (options.key.nonEmpty) {
      own.conf.set("spark.databricks.delta.write.txnAppId", appId)
      own.conf.set("spark.databricks.delta.write.txnVersion", number.toString)
    }
    own
  }

  private def sync(before: Long): Unit = {
    val root = DiskFiles.path(options.path)
    val ours = log.getChanges(before + 1).flatMap { case (version, actions) =>
      val files = CommitFiles.of(root, version, actions)
      if (actions.exists { case t: SetTransaction => t.appId == appId; case _ => false }) files
      // what others have written may be gone by now
      else files.filter(Files.exists(_))
    }.toSeq.distinct
    ours.foreach(DiskFiles.sync)
    CommitFiles.folders(root, ours).foreach(DiskFiles.sync)
  }
}

/** A transaction of one writer: Delta lets one through of two that begin at the same time. Its own way to
  * say so, `txnVersion`, puts the whole table together in a job of Spark's.
  */
private final class WriterTransaction(log: DeltaLog, appId: String)
  extends OptimisticTransaction(log, None, log.update()) {
  readTxn += appId
}

/** What Delta gets of a session in which nobody has said anything about it. */
private object DeltaSettings {
  private val MostParts = 50

  def complete(session: Session): Unit = {
    // Delta asks for its own catalog, which names tables: paths need none
    complete(session, "spark.databricks.delta.requiredSparkConfsCheck.enabled", "false")
    // what a table consists of is put together by so many tasks, 50 by default: seconds on a small machine
    val parts = math.min(MostParts, session.sparkContext.defaultParallelism)
    complete(session, "spark.databricks.delta.snapshotPartitions", parts.toString)
  }

  private def complete(session: Session, key: String, value: String): Unit =
    if (Sessions.setting(session, key).isEmpty) session.conf.set(key, value)
}

private object DeltaBatches {
  /** Spark's own default is a form of timestamps that Parquet has given up, and keeps no bounds of. */
  val Parquet: Map[String, String] = Map("spark.sql.parquet.outputTimestampType" -> "TIMESTAMP_MICROS")
}

/** How many files a batch may have. */
private object Sizes {
  private val Small = 16L << 20
  private val Large = 128L << 20
  private val Few = 4

  /** So many files of these bytes are left as they are. */
  def most(bytes: Long): Long = math.max(Few, bytes / Small)

  /** Rows that are written once more get so many. */
  def wanted(bytes: Long): Int = math.max(1, (bytes / Large).toInt)
}
