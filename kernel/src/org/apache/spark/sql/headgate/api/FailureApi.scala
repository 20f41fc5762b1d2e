/** Owns explaining an exception, as Python calls it. */
package org.apache.spark.sql.headgate.api

import org.apache.spark.sql.headgate.brokers.kafka.KafkaFailure
import org.apache.spark.sql.headgate.failures.FailureReport

object FailureApi {

  /** What is known of an exception, as the JSON of [[FailureReport]]. */
  def report(error: Throwable): String = FailureReport.of(error, fromKafka)

  /** Of what Spark's own Kafka source throws; the classes of Kafka are there only if a job needs them. */
  private def fromKafka(chain: Seq[Throwable]): Option[String] =
    chain.find(_.getClass.getName.startsWith("org.apache.kafka.")).map(_ => KafkaFailure.kindIn(chain))
}
