/** Owns requests to a schema registry: time limits, tries, and what an answer means. */
package org.apache.spark.sql.headgate.registry

import java.io.{ByteArrayInputStream, IOException, InputStream}
import java.net.{HttpURLConnection, URI}
import java.nio.charset.StandardCharsets.UTF_8
import java.security.KeyStore
import java.security.cert.CertificateFactory
import java.util.Base64
import javax.net.ssl.{
  HttpsURLConnection, SSLContext, SSLHandshakeException, SSLSocketFactory, TrustManagerFactory}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.core.JacksonException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}

/** What a registry said.
  *
  * @param code the registry's own number, which says more than the status; 0 if it gave none
  */
private[registry] case class Answer(url: String, path: String, status: Int, code: Int, body: JsonNode) {
  def isGood: Boolean = status >= 200 && status < 300
  def text: String = body.path("message").asText("it said no more")
}

/** What a good answer must have; what has it not is no answer of a registry.
  *
  * @param name of it, for people
  */
private[registry] sealed abstract class Wanted(val name: String) {
  def isIn(body: JsonNode): Boolean
}

private[registry] case object WantedSchema extends Wanted("a schema") {
  override def isIn(body: JsonNode): Boolean = body.path("schema").isTextual
}

private[registry] case object WantedId extends Wanted("the id of a schema") {
  override def isIn(body: JsonNode): Boolean = {
    val id = body.path("id")
    id.isIntegralNumber && id.canConvertToInt && id.intValue > 0
  }
}

/** A registry that is busy or gone is tried again, and the next of its addresses; one that says no is not. */
private[registry] final class RegistryHttp(access: RegistryAccess) {
  import RegistryHttp._

  private lazy val trust: Option[SSLSocketFactory] = access.ca.map(socketFactory)

  /** @param wanted what a good answer has: one without it (a proxy's page) is tried again */
  def get(path: String, wanted: Wanted): Answer = request("GET", path, None, wanted)
  def post(path: String, body: JsonNode, wanted: Wanted): Answer =
    request("POST", path, Some(body.toString), wanted)

  private def request(method: String, path: String, body: Option[String], wanted: Wanted): Answer = {
    var why: IOException = null
    var answer: Answer = null
    val tries = PausesMs.iterator.flatMap(pause => access.urls.map(pause -> _))
    var waited = 0L
    var isHopeless = false
    while (answer == null && !isHopeless && tries.hasNext) {
      val (pause, url) = tries.next()
      if (pause != waited) {
        Thread.sleep(pause)
        waited = pause
      }
      try {
        val said = once(method, url, path, body)
        if (said.status >= 500 || said.status == TooManyRequests) {
          why = new IOException(s"it answered ${said.status} to $method $path: ${said.text}")
        } else if (said.isGood && !wanted.isIn(said.body)) {
          why = new IOException(s"it answered ${said.status} to $method $path without ${wanted.name}")
        } else answer = said
      } catch {
        case error: SSLHandshakeException => // a certificate does not become another one
          why = error
          isHopeless = true
        case error: IOException => why = error
      }
    }
    if (answer == null) throw unreachable(why)
    answer
  }

  private def once(method: String, url: String, path: String, body: Option[String]): Answer = {
    val made = new URI(url.stripSuffix("/") + path).toURL.openConnection()
    val connection = made.asInstanceOf[HttpURLConnection]
    try {
      connection match {
        case https: HttpsURLConnection => trust.foreach(https.setSSLSocketFactory)
        case _ =>
      }
      connection.setConnectTimeout(ConnectMs)
      connection.setReadTimeout(ReadMs)
      // the login is for this registry, and not for wherever it may point to
      connection.setInstanceFollowRedirects(false)
      connection.setRequestMethod(method)
      connection.setRequestProperty("Accept", ContentType)
      access.login.foreach { login =>
        val encoded = Base64.getEncoder.encodeToString(login.getBytes(UTF_8))
        connection.setRequestProperty("Authorization", s"Basic $encoded")
      }
      body.foreach { text =>
        connection.setDoOutput(true)
        connection.setRequestProperty("Content-Type", ContentType)
        connection.getOutputStream.write(text.getBytes(UTF_8))
      }
      val status = connection.getResponseCode
      val stream = if (status < 400) connection.getInputStream else connection.getErrorStream
      val json = parse(stream)
      Answer(url, path, status, json.path("error_code").asInt(0), json)
    } finally connection.disconnect()
  }

  private def unreachable(why: IOException): CodedStateException =
    new CodedStateException(
      Coded("REGISTRY_UNREACHABLE", "url" -> access.toString, "text" -> said(why)), why)
}

private[registry] object RegistryHttp {
  private val ConnectMs = 3000
  private val ReadMs = 10000
  private val PausesMs = Seq(0L, 200L, 600L, 1500L)
  private val TooManyRequests = 429
  private val ContentType = "application/vnd.schemaregistry.v1+json"
  private val MaxText = 300
  private val mapper = new ObjectMapper()

  /** The error for an answer that says no. */
  def refused(answer: Answer): CodedStateException =
    new CodedStateException(Coded("REGISTRY_REFUSED", "url" -> answer.url, "path" -> answer.path,
      "status" -> answer.status, "text" -> answer.text.takeWhile(_ != '\n').take(MaxText)))

  private def said(error: IOException): String = {
    val text = Option(error.getMessage).filter(_.nonEmpty)
    text.fold(error.getClass.getSimpleName)(t => if (t.contains(' ')) t else s"unknown host $t")
  }

  /** What is no JSON (a proxy's page) tells nothing. */
  private def parse(stream: InputStream): JsonNode = {
    val empty = JsonNodeFactory.instance.objectNode()
    if (stream == null) empty
    else try Option(mapper.readTree(stream)).filter(_.isContainerNode).getOrElse(empty)
    catch { case _: JacksonException => empty }
  }

  private def socketFactory(pem: String): SSLSocketFactory = {
    val certificates = CertificateFactory.getInstance("X.509")
      .generateCertificates(new ByteArrayInputStream(pem.getBytes(UTF_8))).asScala
    val store = KeyStore.getInstance(KeyStore.getDefaultType)
    store.load(null, null)
    certificates.zipWithIndex.foreach { case (one, i) => store.setCertificateEntry(s"ca$i", one) }
    val trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm)
    trust.init(store)
    val context = SSLContext.getInstance("TLS")
    context.init(null, trust.getTrustManagers, null)
    context.getSocketFactory
  }
}
