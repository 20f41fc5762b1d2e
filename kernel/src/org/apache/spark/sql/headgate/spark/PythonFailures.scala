/** Owns how Spark says that Python code or a Python worker failed. */
package org.apache.spark.sql.headgate.spark

import java.io.IOException

import org.apache.spark.SparkException
import org.apache.spark.api.python.PythonException

object PythonFailures {
  private val Runners = "org.apache.spark.api.python."
  private val Frames = 14

  /** What Python said, with its traceback. */
  def saidBy(error: Throwable): Option[String] = error match {
    case e: PythonException => Some(e.getMessage)
    case _ => None
  }

  /** How the JVM learns that a worker is gone: from what it reads, or while it writes to it.
    *
    * BasePythonRunner has no condition for the former, and Java no class for the latter.
    */
  def isWorkerGone(error: Throwable): Boolean = error match {
    case e: SparkException => says(e, "Python worker exited unexpectedly")
    case e: IOException => (says(e, "Broken pipe") || says(e, "Connection reset")) &&
      e.getStackTrace.take(Frames).exists(_.getClassName.startsWith(Runners))
    case _ => false
  }

  private def says(error: Throwable, words: String): Boolean =
    String.valueOf(error.getMessage).contains(words)
}
