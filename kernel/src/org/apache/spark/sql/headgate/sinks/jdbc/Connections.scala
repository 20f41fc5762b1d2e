/** Owns the connections of this process that no task uses at the moment. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.sql.Connection
import java.util.Properties

import scala.collection.mutable

import org.apache.spark.sql.headgate.brokers.core.Sweeper

/** Who connects, and as whom.
  *
  * @param name what the server shows for the connection: the fence finds it by that
  */
private[headgate] case class Access(options: Map[String, String], name: String) {
  def url: String = options.getOrElse("url", "")

  def dialect: Dialect = Dialect.of(url)

  /** What the driver is told: what the address says goes first, then the options, then defaults. */
  def properties(defaults: Map[String, String]): Properties = {
    val all = new Properties()
    (defaults ++ options - "url").filterNot(o => named.contains(o._1)).foreach { case (name, value) =>
      all.put(name, value)
    }
    all
  }

  /** The options that the address has. */
  def named: Set[String] =
    url.dropWhile(_ != '?').drop(1).split('&').map(_.takeWhile(_ != '=')).toSet

  /** For people: without user, password and what else is in the query. */
  def shown: String = url.takeWhile(_ != '?')
}

/** A connection, and which tables for staging it has. */
private[headgate] final class Held(val access: Access, val connection: Connection) {
  private[jdbc] var idleSince = 0L
  val staging: mutable.Set[String] = mutable.HashSet.empty
}

/** A connection is taken out for use and put back after a commit; whatever failed never comes back. */
private[headgate] object Connections {
  private lazy val sweeping = Sweeper.eachMinute(before => closeThose(_.idleSince - before < 0))
  private val idle = mutable.HashMap.empty[Access, List[Held]]

  /** One that waits, or a new one; whether it is new. */
  def take(access: Access): (Held, Boolean) = {
    val found = synchronized {
      val waiting = idle.remove(access).getOrElse(Nil)
      if (waiting.drop(1).nonEmpty) idle(access) = waiting.tail
      waiting.headOption
    }
    found.fold((make(access), true))((_, false))
  }

  def make(access: Access): Held = new Held(access, access.dialect.connect(access))

  def putBack(held: Held): Unit = {
    sweeping
    held.idleSince = System.nanoTime()
    synchronized(idle(held.access) = held :: idle.getOrElse(held.access, Nil))
  }

  /** Ends a connection without waiting: the server rolls back what it had begun. */
  def discard(held: Held): Unit = Sweeper.later(held.connection.abort(Sweeper.working))

  def closeOf(name: String): Unit = closeThose(_.access.name == name)

  /** A connection for the driver's own work, in one transaction. */
  def use[T](access: Access)(body: Held => T): T =
    try {
      val held = make(access)
      try {
        val result = body(held)
        held.connection.commit()
        result
      } finally discard(held)
    } catch { case error: java.sql.SQLException => throw JdbcFailure.of(error, access.shown, access.dialect) }

  private def closeThose(chosen: Held => Boolean): Unit = {
    val closed = synchronized {
      val found = idle.values.flatten.filter(chosen).toSet
      idle.mapValuesInPlace((_, held) => held.filterNot(found)).filterInPlace((_, held) => held.nonEmpty)
      found
    }
    closed.foreach(held => Sweeper.later(held.connection.close()))
  }
}
