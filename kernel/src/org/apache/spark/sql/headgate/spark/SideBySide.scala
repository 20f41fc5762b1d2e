/** Owns doing several short things of a task at the same time. */
package org.apache.spark.sql.headgate.spark

import java.util.concurrent.Callable

import scala.util.Try

import org.apache.spark.TaskContext
import org.apache.spark.util.ThreadUtils

private[spark] object SideBySide {
  private lazy val threads = ThreadUtils.newDaemonCachedThreadPool("headgate-side-by-side", 32, 10)

  /** Returns or throws when all have ended, also if the task is interrupted meanwhile. */
  def foreach[T](all: Seq[T])(body: T => Unit): Unit = {
    val task = TaskContext.get()
    val others = all.drop(1).map { one =>
      val work: Callable[Try[Unit]] = () => Try(within(task)(body(one)))
      threads.submit(work)
    }
    val first = all.headOption.map(one => Try(body(one)))
    var interrupted = false
    val ended = first.toSeq ++ others.map { other =>
      while (!other.isDone) {
        try other.get() catch { case _: InterruptedException => interrupted = true }
      }
      other.get()
    }
    if (interrupted) Thread.currentThread().interrupt()
    ended.foreach(_.get)
  }

  private def within(task: TaskContext)(body: => Unit): Unit = {
    if (task != null) TaskContext.setTaskContext(task)
    try body finally TaskContext.unset()
  }
}
