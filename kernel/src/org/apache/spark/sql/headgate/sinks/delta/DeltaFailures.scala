/** Owns the codes of what Delta throws. */
package org.apache.spark.sql.headgate.sinks.delta

import java.io.IOException

import org.apache.spark.sql.delta.DeltaConcurrentModificationException
import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure, CodedStateException}

private[sql] object DeltaFailures {
  def explained[T](sink: String, path: String)(body: => T): T =
    try body catch { case e: Exception => throw of(sink, path, e) }

  /** What is to be thrown instead: the same, unless it has a reason. */
  def of(sink: String, path: String, error: Exception): Exception = error match {
    case e: CodedFailure => error
    case e => codeOf(e).fold(e) { code =>
      new CodedStateException(Coded(code, "sink" -> sink, "path" -> path, "text" -> e.getMessage), e)
    }
  }

  private def codeOf(error: Throwable): Option[String] = error match {
    case null => None
    case _: DeltaConcurrentModificationException => Some("DELTA_CONFLICT")
    case _: IOException => Some("DELTA_PATH")
    case e => codeOf(e.getCause)
  }
}
