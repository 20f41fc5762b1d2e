/** Owns the Pulsar clients of this process, one for each way to reach a service. */
package org.apache.spark.sql.headgate.brokers.pulsar

import java.util.concurrent.{CompletableFuture, ExecutionException, TimeUnit}

import scala.collection.mutable
import scala.jdk.CollectionConverters._

import org.apache.pulsar.client.api.{AuthenticationFactory, PulsarClient, SizeUnit}

import org.apache.spark.sql.headgate.brokers.core.Sweeper

/** A service and how it is reached; the names are those of Python's PulsarAccess. */
case class PulsarAccess(url: String, options: Map[String, String]) {
  // A token is nobody's business: plans and errors are printed.
  override def toString: String = s"PulsarAccess($url)"
}

/** A client that producers hold while they are open. */
private[headgate] final class SharedClient(val access: PulsarAccess, val client: PulsarClient) {
  private[headgate] var users = 0
  private[headgate] var usedAt = System.nanoTime()
}

private[headgate] object Clients {

  /** A broker that does not answer for so long counts as unreachable. */
  val PatienceMs = 15000L

  private val all = mutable.HashMap.empty[PulsarAccess, SharedClient]
  private lazy val sweeping = Sweeper.eachMinute(closeIdle)

  /** Throws a [[PulsarFailure]]. */
  def use[T](access: PulsarAccess)(body: PulsarClient => T): T = {
    val shared = acquire(access)
    try body(shared.client)
    catch {
      case e: Exception if PulsarFailure.isPulsars(e) => throw PulsarFailure.of(e, access.url)
    } finally release(shared)
  }

  /** The client's own limit comes first, and says more. */
  private val SlackMs = 2000L

  /** The value of a future, or what it failed with; it is not waited for longer than our patience. */
  def result[T](future: CompletableFuture[T], ms: Long = PatienceMs + SlackMs): T =
    try future.get(ms, TimeUnit.MILLISECONDS)
    catch { case e: ExecutionException => throw e.getCause }

  def acquire(access: PulsarAccess): SharedClient = synchronized {
    sweeping
    val shared = all.getOrElseUpdate(access, new SharedClient(access, connect(access)))
    shared.users += 1
    shared
  }

  def release(shared: SharedClient): Unit = synchronized {
    shared.users -= 1
    shared.usedAt = System.nanoTime()
  }

  private def closeIdle(before: Long): Unit = {
    val idle = synchronized {
      val found = all.values.filter(s => s.users == 0 && s.usedAt - before < 0).toSeq
      found.foreach(s => all.remove(s.access))
      found
    }
    idle.foreach(s => Sweeper.later(s.client.close()))
  }

  /** Sends nothing to the service yet. One thread is enough: a client has few connections here. */
  private def connect(access: PulsarAccess): PulsarClient = {
    // Counting costs each message, and writes to the log.
    val uncounted = Map[String, AnyRef]("statsIntervalSeconds" -> Long.box(0L)).asJava
    val builder = PulsarClient.builder().loadConf(uncounted).serviceUrl(access.url)
      .ioThreads(1).listenerThreads(1).connectionsPerBroker(1)
      .operationTimeout(PatienceMs.toInt, TimeUnit.MILLISECONDS)
      .connectionTimeout(10, TimeUnit.SECONDS)
      // Tasks limit what they have in flight. A limit for all of them could be used up by rows that
      // wait in one task for others of the same entry, and then nobody would go on.
      .memoryLimit(0, SizeUnit.BYTES)
    val option = access.options.get _
    for (file <- option("tls_trust_certs")) builder.tlsTrustCertsFilePath(file)
    val insecure = option("tls_insecure").contains("true")
    builder.allowTlsInsecureConnection(insecure).enableTlsHostnameVerification(!insecure)
    for (cert <- option("tls_cert"); key <- option("tls_key"))
      builder.authentication(AuthenticationFactory.TLS(cert, key))
    for (token <- option("token")) builder.authentication(AuthenticationFactory.token(token))
    // read anew at each connection: files are renewed
    for (file <- option("token_file")) builder.authentication(AuthenticationFactory.token(() =>
      java.nio.file.Files.readString(java.nio.file.Path.of(file)).trim))
    withOurLoader(builder.build())
  }

  /** The client loads classes by the thread's loader, which need not know its jar. */
  private def withOurLoader[T](make: => T): T = {
    val thread = Thread.currentThread()
    val before = thread.getContextClassLoader
    thread.setContextClassLoader(classOf[PulsarClient].getClassLoader)
    try make finally thread.setContextClassLoader(before)
  }
}
