package org.apache.spark.sql.headgate.store

import org.apache.spark.network.util.JavaUtils
import org.apache.spark.sql.headgate.spark.{Session, Sessions}

/** How many bytes the row caches of one executor may hold together. */
object CacheConf {
  val Key = "spark.headgate.cache.bytes"
  private lazy val fifthOfHeap = Runtime.getRuntime.maxMemory() / 5

  def bytes(session: Session): Long =
    Sessions.setting(session, Key).map(JavaUtils.byteStringAsBytes).getOrElse(fifthOfHeap)
}
