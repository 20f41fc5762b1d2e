/** Owns how Python learns of a broker's failure. */
package org.apache.spark.sql.headgate.brokers.core

import java.util.concurrent.{CompletionException, ExecutionException}

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure, FailureReport}

/** Its kind is its code.
  *
  * @param system kafka or pulsar
  * @param servers where the broker was looked for
  */
abstract class BrokerFailure(
    system: String,
    val kind: String,
    val topic: String,
    val servers: String,
    val text: String,
    cause: Throwable)
  extends RuntimeException(BrokerFailure.coded(system, kind, topic, servers, text).line, cause)
    with CodedFailure {
  override val coded: Coded = BrokerFailure.coded(system, kind, topic, servers, text)
}

object BrokerFailure {
  val TopicMissing = "TOPIC_MISSING"
  val TooLarge = "RECORD_TOO_LARGE"
  val Unreachable = "BROKER_UNREACHABLE"
  val NotAuthorised = "NOT_AUTHORISED"
  val Fenced = "PRODUCER_FENCED"

  private def coded(
      system: String, kind: String, topic: String, servers: String, text: String): Coded =
    Coded(kind, "system" -> system, "topic" -> topic, "servers" -> servers, "text" -> text)

  def causes(error: Throwable): Seq[Throwable] = FailureReport.causes(error)

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
