/** Owns finding stores that this process has loaded, without asking the driver about each. */
package org.apache.spark.sql.headgate.spark

import scala.collection.mutable

import org.apache.spark.{SparkContext, SparkEnv}
import org.apache.spark.sql.execution.streaming.state.{StateStore => Store, StateStoreProvider, StateStoreProviderId}

/**
 * `StateStore.get` tells the driver where each store is whenever it is opened, with two questions that it
 * waits for while it holds the lock that all stores are found under. The answer says which stores have
 * moved to other executors. Where there is one process there are no others.
 */
private[spark] object LoadedStores {
  /** Spark is asked now and then: it restarts maintenance that has ended, and may want a snapshot. */
  private val AskEvery = 32

  // private in Scala, so not to be named from here
  private lazy val providers = {
    val accessor = Store.getClass.getDeclaredMethod("loadedProviders")
    accessor.setAccessible(true)
    accessor.invoke(Store).asInstanceOf[mutable.HashMap[StateStoreProviderId, StateStoreProvider]]
  }

  /** @param version that the store will be opened at */
  def find(id: StateStoreProviderId, version: Long): Option[StateStoreProvider] =
    if (version % AskEvery == 0 || !SparkContext.isDriver(SparkEnv.get.executorId)) None
    else providers.synchronized(providers.get(id))
}
