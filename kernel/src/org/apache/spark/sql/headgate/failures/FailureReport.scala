/** Owns what Python gets to know of an exception. */
package org.apache.spark.sql.headgate.failures

import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.spark.PythonFailures

/** One JSON object:
  *
  *  - `code` and `fields`, if the exception or one of its causes says why it failed
  *  - `python`: what Python said in a worker, with its traceback, if that is what failed
  *  - `causes`: class and message of the exception and its causes, the outermost first
  */
object FailureReport {
  private val MaxCauses = 20
  private val MaxMessage = 4000

  def of(error: Throwable, others: Seq[Throwable] => Option[String]): String = {
    val chain = causes(error)
    val json = JsonNodeFactory.instance.objectNode()
    val python = chain.iterator.flatMap(PythonFailures.saidBy(_)).nextOption()
    codedIn(chain) match {
      case Some(coded) => json.put("code", coded.code).set[Nothing]("fields", coded.fields)
      case None if python.isDefined => json.put("code", "PYTHON").put("python", python.get)
      case None => KnownFailures.codeOf(chain, others).foreach(json.put("code", _))
    }
    val list = json.putArray("causes")
    chain.foreach { e =>
      list.addObject().put("class", e.getClass.getName)
        .put("message", Option(e.getMessage).map(_.take(MaxMessage)).orNull)
    }
    json.toString
  }

  /** The exception and its causes, the outermost first. */
  def causes(error: Throwable): Seq[Throwable] =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(MaxCauses).toSeq

  /** A failure that has its class still, before one that is only quoted. */
  private def codedIn(chain: Seq[Throwable]): Option[Coded] =
    chain.collectFirst { case e: CodedFailure => e.coded }
      .orElse(chain.iterator.flatMap(e => Option(e.getMessage)).flatMap(Coded.find(_)).nextOption())
}
