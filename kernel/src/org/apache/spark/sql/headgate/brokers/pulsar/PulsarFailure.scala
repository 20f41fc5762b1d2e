/** Owns what is said when Pulsar fails. */
package org.apache.spark.sql.headgate.brokers.pulsar

import java.util.concurrent.{TimeoutException => JTimeout}

import org.apache.pulsar.client.api.PulsarClientException
import org.apache.pulsar.client.api.PulsarClientException._

import org.apache.spark.sql.headgate.brokers.core.BrokerFailure

class PulsarFailure(kind: String, topic: String, service: String, text: String, cause: Throwable)
  extends BrokerFailure("pulsar", kind, topic, service, text, cause)

object PulsarFailure {
  import BrokerFailure.{causes, innermost}

  val TopicMissing: String = BrokerFailure.TopicMissing
  val TooLarge: String = BrokerFailure.TooLarge
  val Unreachable: String = BrokerFailure.Unreachable
  val NotAuthorised: String = BrokerFailure.NotAuthorised
  val Fenced: String = BrokerFailure.Fenced
  val NotDeduplicated = "DEDUPLICATION_OFF"
  val Other = "PULSAR"

  private val Quoted = "^\\{\"errorMsg\":\"(.*?)\",\"reqId\"".r

  def missing(topic: String, service: String, cause: Throwable = null): PulsarFailure =
    new PulsarFailure(TopicMissing, topic, service, s"the topic '$topic' is not there", cause)

  /** What went wrong, by the first cause that says it. */
  def of(error: Throwable, service: String, topic: String = null): PulsarFailure = error match {
    case known: PulsarFailure => known
    case _ =>
      val cause = causes(error).find(kindOf(_) != Other).getOrElse(innermost(error))
      val kind = kindOf(cause)
      new PulsarFailure(kind, topic, service, textOf(kind, cause, topic, service), error)
  }

  /** Whether Pulsar says it; an interrupt is Spark's, though it may come in a class of Pulsar's. */
  def isPulsars(error: Throwable): Boolean = !isInterrupt(error) && causes(error).exists {
    case _: PulsarFailure | _: PulsarClientException | _: JTimeout => true
    case _ => false
  }

  def isInterrupt(error: Throwable): Boolean =
    causes(error).exists(_.isInstanceOf[InterruptedException])

  private def kindOf(error: Throwable): String = error match {
    case _: NotFoundException | _: TopicDoesNotExistException => TopicMissing
    case _: InvalidMessageException => TooLarge
    case e: NotAllowedException if saidBy(e).contains("maximum message size") => TooLarge
    case _: AuthenticationException | _: AuthorizationException |
        _: UnsupportedAuthenticationException | _: GettingAuthenticationDataException => NotAuthorised
    case _: ProducerBusyException | _: ProducerFencedException => Fenced
    case _: PulsarClientException.TimeoutException | _: JTimeout | _: ConnectException |
        _: NotConnectedException | _: ServiceNotReadyException | _: java.net.ConnectException |
        _: java.net.UnknownHostException => Unreachable
    case _ => Other
  }

  /** The broker's words; the client puts them into a JSON object with addresses and numbers. */
  private def saidBy(error: Throwable): String = {
    val said = BrokerFailure.said(error)
    Quoted.findFirstMatchIn(said).map(_.group(1)).filter(_.nonEmpty).getOrElse(said)
  }

  private def textOf(kind: String, cause: Throwable, topic: String, service: String): String = {
    val said = saidBy(cause)
    kind match {
      case TopicMissing => s"the topic '${Option(topic).getOrElse(said)}' is not there"
      case TooLarge => s"a record is too large ($said)"
      case NotAuthorised => s"the broker refuses: $said"
      case Fenced => s"another producer of the same name is connected: $said"
      case Unreachable => s"no answer from $service: $said"
      case _ => s"${cause.getClass.getSimpleName}: $said"
    }
  }
}
