/** Owns the stores that a task has open. */
package org.apache.spark.sql.headgate.store

import org.apache.hadoop.conf.Configuration

import org.apache.spark.TaskContext
import org.apache.spark.sql.execution.streaming.operators.stateful.StatefulOperatorStateInfo
import org.apache.spark.sql.execution.streaming.state._

/** The stores of one task, loaded at the version that the batch starts from. */
final class OpenStores(val ids: Array[StateStoreProviderId], val stores: Array[StateStore],
    val version: Long, val loadedIds: Option[Array[String]], val conf: StateStoreConf)

object OpenStores {
  def load(info: StatefulOperatorStateInfo, partition: Int, specs: Seq[StoreSpec],
      conf: StateStoreConf, hadoop: Configuration): OpenStores = {
    val loaded = info.getStateStoreCkptId(partition)
    val ids = specs.map(s => StateStoreProviderId(info, partition, s.name)).toArray
    val opened = new Array[StateStore](specs.length)
    // a task that ends without a commit leaves no half-written version behind
    TaskContext.get().addTaskCompletionListener[Unit] { _ =>
      opened.foreach(s => if (s != null && !s.hasCommitted) s.abort())
    }
    specs.zipWithIndex.foreach { case (s, i) =>
      opened(i) = StateStore.get(ids(i), s.keySchema, s.valueSchema, s.encoder, info.storeVersion,
        loaded.map(_(i)), info.stateSchemaMetadata, useColumnFamilies = false, conf, hadoop)
    }
    new OpenStores(ids, opened, info.storeVersion, loaded, conf)
  }
}
