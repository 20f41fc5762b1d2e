/** Owns what is said when Kafka fails. */
package org.apache.spark.sql.headgate.brokers.kafka

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.consumer.{OffsetOutOfRangeException => NoOffsetException}
import org.apache.kafka.common.KafkaException
import org.apache.kafka.common.config.ConfigException
import org.apache.kafka.common.errors._

import org.apache.spark.sql.headgate.brokers.core.BrokerFailure

class KafkaFailure(kind: String, topic: String, servers: String, text: String, cause: Throwable)
  extends BrokerFailure("kafka", kind, topic, servers, text, cause)

object KafkaFailure {
  import BrokerFailure.{causes, innermost}

  val TopicMissing: String = BrokerFailure.TopicMissing
  val TooLarge: String = BrokerFailure.TooLarge
  val Unreachable: String = BrokerFailure.Unreachable
  val NotAuthorised: String = BrokerFailure.NotAuthorised
  val Fenced: String = BrokerFailure.Fenced
  val TimedOut = "TRANSACTION_TIMEOUT"
  val OffsetGone = "OFFSET_GONE"
  val Other = "KAFKA"

  def missing(topic: String, servers: String, cause: Throwable = null): KafkaFailure =
    new KafkaFailure(TopicMissing, topic, servers, s"the topic '$topic' is not there", cause)

  /** What went wrong, by the first cause that says it. */
  def of(error: Throwable, servers: String, topic: String = null): KafkaFailure = error match {
    case known: KafkaFailure => known
    case _ =>
      val cause = causes(error).find(kindOf(_) != Other).getOrElse(innermost(error))
      val kind = kindOf(cause)
      val about = denied(cause).getOrElse(topic)
      new KafkaFailure(kind, about, servers, textOf(kind, cause, about, servers), error)
  }

  /** The kind of the first of these that has one. */
  def kindIn(chain: Seq[Throwable]): String = chain.map(kindOf).find(_ != Other).getOrElse(Other)

  /** A transaction fails as a whole, so the record of any of its topics may be the first to tell. */
  private def denied(cause: Throwable): Option[String] = cause match {
    case e: TopicAuthorizationException => e.unauthorizedTopics.asScala.toSeq.sorted.headOption
    case _ => None
  }

  /** Whether Kafka says it; an interrupt is Spark's, though it may come in a class of Kafka's. */
  def isKafkas(error: Throwable): Boolean = !isInterrupt(error) && causes(error).exists {
    case _: KafkaFailure | _: KafkaException => true
    case _ => false
  }

  def isInterrupt(error: Throwable): Boolean = causes(error).exists {
    case _: InterruptException | _: InterruptedException => true
    case _ => false
  }

  /** Whether a producer can do nothing more, not even end its transaction. */
  def isFatal(error: Throwable): Boolean = error match {
    case f: KafkaFailure => f.kind == Fenced || f.kind == TimedOut
    case _ => false
  }

  private def kindOf(error: Throwable): String = error match {
    case _: UnknownTopicOrPartitionException => TopicMissing
    case _: OffsetOutOfRangeException | _: NoOffsetException => OffsetGone
    case _: RecordTooLargeException | _: RecordBatchTooLargeException => TooLarge
    case _: AuthorizationException | _: AuthenticationException => NotAuthorised
    case _: ProducerFencedException | _: InvalidProducerEpochException => Fenced
    case _: InvalidTxnTimeoutException => TimedOut
    // initTransactions keeps the words of an error that it does not expect, and not its class
    case e: KafkaException if says(e, "transaction timeout is larger") => TimedOut
    case _: TimeoutException | _: DisconnectException | _: NetworkException |
        _: java.net.ConnectException => Unreachable
    case c: ConfigException if says(c, "resolvable bootstrap") => Unreachable
    case _ => Other
  }

  private def says(error: Throwable, words: String): Boolean =
    String.valueOf(error.getMessage).contains(words)

  private def textOf(kind: String, cause: Throwable, topic: String, servers: String): String = {
    val said = BrokerFailure.said(cause)
    kind match {
      case TopicMissing => s"the topic '${Option(topic).getOrElse(said)}' is not there"
      case TooLarge =>
        s"a record is too large ($said): raise the client's max.request.size, " +
          "and max.message.bytes of the topic"
      case NotAuthorised => s"the broker refuses: $said"
      case Fenced => s"another producer with the same transactional id has taken over: $said"
      case TimedOut =>
        s"the broker does not allow transactions of that length ($said): lower " +
          "transaction_timeout, or raise the broker's transaction.max.timeout.ms"
      case Unreachable => s"no answer from $servers: $said"
      case _ => s"${cause.getClass.getSimpleName}: $said"
    }
  }
}
