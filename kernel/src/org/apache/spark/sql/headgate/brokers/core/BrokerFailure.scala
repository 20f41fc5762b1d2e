/** Owns how Python learns of a broker's failure. */
package org.apache.spark.sql.headgate.brokers.core

import java.util.concurrent.{CompletionException, ExecutionException}

import com.fasterxml.jackson.databind.node.JsonNodeFactory

/** Its message is one line for Python: `HEADGATE_KAFKA {json}` or `HEADGATE_PULSAR {json}`.
  *
  * @param system KAFKA or PULSAR
  * @param servers where the broker was looked for
  */
abstract class BrokerFailure(
    system: String,
    val kind: String,
    val topic: String,
    val servers: String,
    val text: String,
    cause: Throwable)
  extends RuntimeException(BrokerFailure.line(system, kind, topic, servers, text), cause)

object BrokerFailure {
  val TopicMissing = "TOPIC_MISSING"
  val TooLarge = "RECORD_TOO_LARGE"
  val Unreachable = "BROKER_UNREACHABLE"
  val NotAuthorised = "NOT_AUTHORISED"
  val Fenced = "PRODUCER_FENCED"

  private def line(
      system: String, kind: String, topic: String, servers: String, text: String): String = {
    val json = JsonNodeFactory.instance.objectNode().put("kind", kind)
    if (topic != null) json.put("topic", topic)
    if (servers != null) json.put("servers", servers)
    s"HEADGATE_$system ${json.put("message", text).toString}"
  }

  def causes(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(20).toSeq

  /** The error itself, out of the wrappings that futures put around it. */
  def innermost(error: Throwable): Throwable =
    causes(error).find {
      case _: ExecutionException | _: CompletionException => false
      case _ => true
    }.getOrElse(error)

  /** What an error says, in one line. */
  def said(error: Throwable): String =
    Option(error.getMessage).getOrElse(error.getClass.getSimpleName).linesIterator.mkString(" ")
}
