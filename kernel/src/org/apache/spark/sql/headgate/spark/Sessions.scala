/** Owns what a session gives beyond Spark's API. */
package org.apache.spark.sql.headgate.spark

import org.apache.hadoop.conf.Configuration

import org.apache.spark.broadcast.Broadcast
import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkStrategy
import org.apache.spark.util.SerializableConfiguration

object Sessions {
  def active: Session = SparkSession.active

  def of(api: ApiSession): Session = api.asInstanceOf[SparkSession]

  /** One with the same views, functions and settings, which can then differ. */
  def copyOf(session: Session): Session = session.cloneSession()

  def addStrategy(session: Session, strategy: SparkStrategy): Unit = {
    val methods = session.sessionState.experimentalMethods
    if (!methods.extraStrategies.contains(strategy)) methods.extraStrategies = methods.extraStrategies :+ strategy
  }

  def hadoop(session: Session): Configuration = session.sessionState.newHadoopConf()

  def hadoop(session: Session, options: Map[String, String]): Configuration =
    session.sessionState.newHadoopConfWithOptions(options)

  /** Hadoop's settings for tasks. */
  def broadcastHadoop(session: Session): Broadcast[SerializableConfiguration] =
    SerializableConfiguration.broadcast(session.sparkContext, hadoop(session))

  /** A setting of ours. */
  def setting(session: Session, key: String): Option[String] =
    Option(session.sessionState.conf.getConfString(key, null))

  def timeZone(session: Session): String = session.sessionState.conf.sessionLocalTimeZone
}
