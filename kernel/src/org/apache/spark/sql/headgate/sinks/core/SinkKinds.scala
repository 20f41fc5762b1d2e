/** Owns the kinds of sinks that there are, by name. */
package org.apache.spark.sql.headgate.sinks.core

import java.util.ServiceLoader
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._

object SinkKinds {
  private val known = new ConcurrentHashMap[String, SinkKind]()

  /** A kind by its name; throws if there is none. */
  def of(kind: String, sink: String): SinkKind = {
    // a jar may have come to the session since the last look
    if (!known.containsKey(kind)) load()
    Option(known.get(kind)).getOrElse(throw new IllegalArgumentException(
      s"sink '$sink': kind must be one of ${names.mkString(", ")}, got '$kind'"))
  }

  def names: Seq[String] = {
    load()
    known.keySet.asScala.toSeq.sorted
  }

  private def load(): Unit = synchronized {
    val loaders = Seq(getClass.getClassLoader, Thread.currentThread().getContextClassLoader)
    loaders.filter(_ != null).distinct.foreach { loader =>
      ServiceLoader.load(classOf[SinkKind], loader).forEach(add(_))
    }
  }

  private def add(kind: SinkKind): Unit = {
    val before = known.putIfAbsent(kind.name, kind)
    if (before != null && before.getClass != kind.getClass) {
      throw new IllegalStateException(s"a kind of sink must have a name of its own, got " +
        s"'${kind.name}' of ${before.getClass.getName} and ${kind.getClass.getName}")
    }
  }
}
