package org.apache.spark.sql.headgate.testing

import org.apache.spark.TaskContext
import org.apache.spark.sql.headgate.spark.Session

/** For tests: makes first attempts of tasks fail after they have committed their state. */
object TaskFailures {
  val Key = "spark.headgate.test.fail.after.state.commit"

  /** In every n-th batch; 0: never. */
  def every(session: Session): Int = session.conf.getOption(Key).fold(0)(_.toInt)

  def maybeFail(every: Int, batchId: Long): Unit = {
    val task = TaskContext.get()
    if (every > 0 && batchId % every == 0 && task.attemptNumber() == 0 && task.stageAttemptNumber() == 0)
      throw new RuntimeException(s"headgate test: failed after the state commit of batch $batchId")
  }
}
