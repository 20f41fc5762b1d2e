/** Owns the stores that a task has open. */
package org.apache.spark.sql.headgate.spark

import org.apache.hadoop.conf.Configuration

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state.{StateStore => Store, StateStoreConf, StateStoreProviderId}

/** The stores of one task, loaded at the version that the batch starts from.
  *
  * @param begunNanos when their loading began
  */
final class OpenStores private[spark] (val ids: Array[StoreId], val stores: Array[StateStore],
    val version: Long, val loadedIds: Option[Array[String]], private[spark] val conf: StateStoreConf,
    val begunNanos: Long) {

  /** The unique id of the version that a store has committed, where versions have one. */
  def committedId(number: Int): Option[String] =
    if (conf.enableStateStoreCheckpointIds) stores(number).getStateStoreCheckpointInfo().stateStoreCkptId
    else None
}

object OpenStores {

  /** Whether a store is loaded on this executor. */
  def isLoaded(id: StoreId): Boolean = Store.isLoaded(id)

  private[spark] def load(info: StatefulOperatorStateInfo, partition: Int, shapes: Seq[StoreShape],
      conf: StateStoreConf, hadoop: Configuration): OpenStores = {
    val begun = System.nanoTime()
    val loaded = info.getStateStoreCkptId(partition)
    val ids = shapes.map(s => StateStoreProviderId(info, partition, s.name)).toArray
    val opened = new Array[StateStore](shapes.length)
    // a task that ends without a commit leaves no half-written version behind
    TaskContext.get().addTaskCompletionListener[Unit] { _ =>
      opened.foreach(s => if (s != null && !s.hasCommitted) s.abort())
    }
    shapes.zipWithIndex.foreach { case (s, i) =>
      opened(i) = LoadedStores.find(ids(i), info.storeVersion) match {
        case Some(provider) => provider.getStore(info.storeVersion, loaded.map(_(i)))
        case None => Store.get(ids(i), s.keySchema, s.valueSchema, s.layout.encoder(s.keySchema),
          info.storeVersion, loaded.map(_(i)), info.stateSchemaMetadata, useColumnFamilies = false, conf,
          hadoop)
      }
    }
    new OpenStores(ids, opened, info.storeVersion, loaded, conf, begun)
  }
}
