/** Owns opening the files of a store outside of a query, to read one version or to write one. */
package org.apache.spark.sql.headgate.spark

import java.util.UUID

import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.TaskContext
import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.sql.execution.streaming.state.{
  RocksDBStateStoreProvider, StateStoreConf, StateStoreId, StateStoreProvider, StateStoreProviderId}
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

  private def provider(shape: StoreShape, partition: Int): StateStoreProvider = {
    val id = StateStoreId(new Path(folder, "state").toString, operatorId, partition, shape.name)
    StateStoreProvider.createAndInit(StateStoreProviderId(id, UUID.randomUUID()), shape.keySchema,
      shape.valueSchema, shape.layout.encoder(shape.keySchema), useColumnFamilies = false, conf,
      // a copy: the provider writes its run id into it
      new Configuration(hadoop.value.value), useMultipleValuesPerKey = false, None)
  }

  /** A version for reading; it is closed with the task, or sooner by `close`. */
  def read(shape: StoreShape, partition: Int, version: Long, id: String): OpenForReading = {
    val made = provider(shape, partition)
    val store = try made.getReadStore(version, Some(id))
      catch { case e: Throwable => made.close(); throw e }
    val open = new OpenForReading(made, store)
    TaskContext.get().addTaskCompletionListener[Unit](_ => open.close())
    open
  }

  /** An empty store that becomes `version` when it is committed, as one complete snapshot. */
  def write(shape: StoreShape, partition: Int, version: Long): OpenForWriting = {
    val made = provider(shape, partition)
    try new OpenForWriting(shape, made, made.getStore(version - 1, None, loadEmpty = true))
    catch { case e: Throwable => made.close(); throw e }
  }
}

object StoreFiles {
  def of(session: Session, folder: String, operatorId: Long): StoreFiles = {
    session.streams // starts the coordinator that providers report to
    val conf = session.sessionState.conf.clone()
    conf.setConf(SQLConf.STATE_STORE_PROVIDER_CLASS, classOf[RocksDBStateStoreProvider].getName)
    conf.setConf(SQLConf.STATE_STORE_CHECKPOINT_FORMAT_VERSION, 2)
    new StoreFiles(folder, operatorId, new StateStoreConf(conf),
      Sessions.broadcastHadoop(session))
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

final class OpenForWriting(shape: StoreShape, provider: StateStoreProvider, val store: StateStore) {
  /** Rows to point at what is put. */
  val key = new UnsafeRow(shape.keySchema.length)
  val value = new UnsafeRow(shape.valueSchema.length)

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
