package org.apache.spark.sql.headgate.testing

import java.util.concurrent.atomic.AtomicLong

import org.apache.spark.{SparkContext, TaskContext}
import org.apache.spark.sql.headgate.spark.Session

/** For tests: makes first attempts of tasks fail after they have committed their state, or while they do. */
object TaskFailures {
  val Key = "spark.headgate.test.fail.after.state.commit"

  /** In every n-th batch; 0: never. */
  def every(session: Session): Int = session.conf.getOption(Key).fold(0)(_.toInt)

  def maybeFail(every: Int, batchId: Long): Unit = {
    val task = TaskContext.get()
    if (every > 0 && batchId % every == 0 && task.attemptNumber() == 0 && task.stageAttemptNumber() == 0)
      throw new RuntimeException(s"headgate test: failed after the state commit of batch $batchId")
  }

  /** What happens to a task that commits its stores: it fails `before` the first one or `between` two, or
    * Spark ends it there with `kill`.
    */
  val CommitKey = "spark.headgate.test.in.state.commit"

  def inCommit(session: Session): Option[String] = session.conf.getOption(CommitKey)

  /** How many tasks of this process it happened to. */
  val inCommits = new AtomicLong

  /** Called before each store commits, beside the others of its task: the first one commits in any case if
    * it is the second that does not.
    */
  def maybeFailInCommit(how: Option[String], store: Int): Unit = {
    val task = TaskContext.get()
    val here = how.exists(h => store == (if (h == "before") 0 else 1))
    if (here && task.attemptNumber() == 0 && task.stageAttemptNumber() == 0) {
      inCommits.incrementAndGet()
      if (!how.contains("kill")) throw new RuntimeException(s"headgate test: failed ${how.get} commits of stores")
      // as Spark does it: the task is marked, and its thread is interrupted
      SparkContext.getOrCreate().killTaskAttempt(task.taskAttemptId(), interruptThread = true, "headgate test")
      while (!task.isInterrupted()) Thread.sleep(1)
    }
  }
}
