/** Owns how a schema registry is reached. */
package org.apache.spark.sql.headgate.registry

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.JsonNode

/** @param urls of one registry, tried in this order
  * @param login `user:password`, if it asks for one
  * @param ca certificates that vouch for it, as PEM; those of the JVM by default
  */
final case class RegistryAccess(urls: Seq[String], login: Option[String], ca: Option[String]) {

  /** Plans are printed: a password must not be in them. */
  override def toString: String = urls.mkString(",")
}

object RegistryAccess {

  /** From the JSON that Python gives; none if there is no registry. */
  def of(node: JsonNode): Option[RegistryAccess] =
    Option(node).filter(_.isObject).map { n =>
      RegistryAccess(n.get("urls").elements.asScala.map(_.asText).toSeq, text(n, "login"), text(n, "ca"))
    }

  private def text(node: JsonNode, name: String): Option[String] =
    Option(node.get(name)).filterNot(_.isNull).map(_.asText)
}
