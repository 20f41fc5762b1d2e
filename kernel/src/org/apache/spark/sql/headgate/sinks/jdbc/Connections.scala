/** Owns the connections of this process that no task uses at the moment. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.sql.Connection
import java.util.Properties

import scala.collection.mutable
import scala.util.control.NonFatal

import org.postgresql.{Driver, PGConnection, PGProperty}

import org.apache.spark.sql.headgate.brokers.core.Sweeper

/** Who connects, and as whom.
  *
  * @param name what the server shows for the connection: the fence finds it by that
  */
private[headgate] case class Access(options: Map[String, String], name: String) {
  def url: String = options.getOrElse("url", "")

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

  def postgres: PGConnection = connection.unwrap(classOf[PGConnection])
}

/** A connection is taken out for use and put back after a commit; whatever failed never comes back. */
private[headgate] object Connections {
  private lazy val sweeping = Sweeper.eachMinute(before => closeThose(_.idleSince - before < 0))
  private val idle = mutable.HashMap.empty[Access, List[Held]]

  /** Nothing may hang for ever where nobody sees it: an answer in ten minutes, a lock in half of one. */
  private val Defaults = Map(
    PGProperty.SOCKET_TIMEOUT.getName -> "600",
    PGProperty.CONNECT_TIMEOUT.getName -> "10",
    PGProperty.TCP_KEEP_ALIVE.getName -> "true")
  private val LockTimeout = "lock_timeout"
  private val LockTimeoutMs = 30000

  /** One that waits, or a new one; whether it is new. */
  def take(access: Access): (Held, Boolean) = {
    val found = synchronized {
      val waiting = idle.remove(access).getOrElse(Nil)
      if (waiting.drop(1).nonEmpty) idle(access) = waiting.tail
      waiting.headOption
    }
    found.fold((make(access), true))((_, false))
  }

  def make(access: Access): Held = {
    val properties = new Properties()
    (Defaults ++ access.options - "url").foreach { case (name, value) =>
      // what the address says goes first
      if (!access.named.contains(name)) properties.put(name, value)
    }
    properties.put(PGProperty.APPLICATION_NAME.getName, access.name)
    val connection = new Driver().connect(access.url, properties)
    if (connection == null) {
      throw new IllegalArgumentException(s"the PostgreSQL driver does not take ${access.shown}")
    }
    try {
      // markers are locked, and who waited for one must see what the other has written
      connection.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED)
      if (!access.options.getOrElse("options", "").contains(LockTimeout)) {
        Sql.execute(connection, s"SET $LockTimeout = $LockTimeoutMs")
      }
      connection.setAutoCommit(false)
      new Held(access, connection)
    } catch { case NonFatal(error) => connection.close(); throw error }
  }

  def putBack(held: Held): Unit = {
    sweeping
    held.idleSince = System.nanoTime()
    synchronized(idle(held.access) = held :: idle.getOrElse(held.access, Nil))
  }

  /** Ends a connection without waiting: the server rolls back what it had begun. */
  def discard(held: Held): Unit = Sweeper.later(held.connection.abort(Sweeper.working))

  def closeOf(name: String): Unit = closeThose(_.access.name == name)

  /** A connection for the driver's own work, in one transaction. */
  def use[T](access: Access)(body: Connection => T): T =
    try {
      val held = make(access)
      try {
        val result = body(held.connection)
        held.connection.commit()
        result
      } finally discard(held)
    } catch { case error: java.sql.SQLException => throw JdbcFailure.of(error, access.shown) }

  private def closeThose(chosen: Held => Boolean): Unit = {
    val closed = synchronized {
      val found = idle.values.flatten.filter(chosen).toSet
      idle.mapValuesInPlace((_, held) => held.filterNot(found)).filterInPlace((_, held) => held.nonEmpty)
      found
    }
    closed.foreach(held => Sweeper.later(held.connection.close()))
  }
}
