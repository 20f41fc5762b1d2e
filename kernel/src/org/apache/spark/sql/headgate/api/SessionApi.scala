/** Owns sessions for jobs, as Python asks for them. */
package org.apache.spark.sql.headgate.api

import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.sql.headgate.planning.AddedStrategy
import org.apache.spark.sql.headgate.spark.{Sessions, Signals}

object SessionApi {
  /** A copy of a session with settings of its own; with `strategy` for one without our extension. */
  def beside(session: ApiSession, strategy: Boolean): ApiSession = {
    val own = Sessions.copyOf(Sessions.of(session))
    if (strategy) Sessions.addStrategy(own, AddedStrategy)
    own
  }

  /** Lets SIGTERM stop the job and not Spark: it goes to the Python process that this JVM has started. */
  def passOnSignals(python: Long): Unit = Signals.passOn(python)
}
