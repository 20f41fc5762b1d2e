/** Owns opening the files of a store outside of a query, to read one version or to write one. */
package org.apache.spark.sql.headgate.store

import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.state._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.util.SerializableConfiguration

/**
 * The stores of one operator in a Spark folder; sent to tasks.
 *
 * Every opening has a provider of its own under a fresh run id, so that neither a running query's
 * stores nor its local files are touched.
 */
final class StoreFiles(folder: String, operatorId: Long, conf: StateStoreConf,
    hadoop: Broadcast[SerializableConfiguration]) extends Serializable {

  private def provider(spec: StoreSpec, partition: Int): StateStoreProvider = {
    val id = StateStoreId(new Path(folder, "state").toString, operatorId, partition, spec.name)
    StateStoreProvider.createAndInit(StateStoreProviderId(id, UUID.randomUUID()), spec.keySchema,
      spec.valueSchema, spec.encoder, useColumnFamilies = false, conf,
      // a copy: the provider writes its run id into it
      new Configuration(hadoop.value.value), useMultipleValuesPerKey = false, None)
  }

  /** A version for reading; it is closed with the task, or sooner by `close`. */
  def read(spec: StoreSpec, partition: Int, version: Long, id: String): OpenForReading = {
    val made = provider(spec, partition)
    val store = try made.getReadStore(version, Some(id))
      catch { case e: Throwable => made.close(); throw e }
    val open = new OpenForReading(made, store)
    TaskContext.get().addTaskCompletionListener[Unit](_ => open.close())
    open
  }

  /** An empty store that becomes `version` when it is committed, as one complete snapshot. */
  def write(spec: StoreSpec, partition: Int, version: Long): OpenForWriting = {
    val made = provider(spec, partition)
    try new OpenForWriting(spec, made, made.getStore(version - 1, None, loadEmpty = true))
    catch { case e: Throwable => made.close(); throw e }
  }
}

object StoreFiles {
  def of(session: SparkSession, folder: String, operatorId: Long): StoreFiles = {
    session.streams // starts the coordinator that providers report to
    val conf = session.sessionState.conf.clone()
    conf.setConf(SQLConf.STATE_STORE_PROVIDER_CLASS, classOf[RocksDBStateStoreProvider].getName)
    conf.setConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, 2)
    new StoreFiles(folder, operatorId, new StateStoreConf(conf),
      SerializableConfiguration.broadcast(session.sparkContext, session.sessionState.newHadoopConf()))
  }
}

final class OpenForReading(provider: StateStoreProvider, val store: ReadStateStore) {
  private var closed = false

  def close(): Unit = if (!closed) {
    closed = true
    try store.release()
    catch { case NonFatal(_) => } // a task that failed has given it up already
    finally provider.close()
  }
}

final class OpenForWriting(spec: StoreSpec, provider: StateStoreProvider, val store: StateStore) {
  private val key = new UnsafeRow(spec.keySchema.length)
  private val value = new UnsafeRow(spec.valueSchema.length)

  def put(row: StoredRow): Unit = {
    row.keyInto(key)
    row.valueInto(value)
    store.put(key, value)
  }

  /** The unique id of the version that is written now. */
  def commit(): String = {
    store.commit()
    store.getStateStoreCheckpointInfo().stateStoreCkptId.get
  }

  def close(): Unit =
    try if (!store.hasCommitted) store.abort()
    catch { case NonFatal(_) => } // a task that failed has given it up already
    finally provider.close()
}
