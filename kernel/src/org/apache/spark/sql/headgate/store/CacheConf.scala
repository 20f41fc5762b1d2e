package org.apache.spark.sql.headgate.store

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.internal.SQLConf

/** How many bytes the row caches of one executor may hold together. */
object CacheConf {
  val Key = "spark.headgate.cache.bytes"
  private lazy val fifthOfHeap = Runtime.getRuntime.maxMemory() / 5

  def bytes(conf: SQLConf): Long =
    Option(conf.getConfString(Key, null)).map(JavaUtils.byteStringAsBytes).getOrElse(fifthOfHeap)
}
