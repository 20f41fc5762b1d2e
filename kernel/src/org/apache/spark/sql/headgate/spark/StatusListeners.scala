/** Owns leaving out what Spark writes down of each task and plan for pages that are off. */
package org.apache.spark.sql.headgate.spark

private[spark] object StatusListeners {
  /** `false`: without them. Headgate sets it where it makes a session of one process without Spark's pages. */
  private val Setting = "spark.headgate.status.listeners"

  /**
   * Spark keeps a store of jobs, stages, tasks, plans and their metrics also if nothing shows it: two
   * listeners, which get a message for each start and end of a task, stage, job and plan.
   */
  def leaveOut(session: Session): Unit = if (Sessions.setting(session, Setting).contains("false")) {
    val context = session.sparkContext
    (context.statusStore.listener ++ session.sharedState.statusStore.listener)
      .foreach(context.listenerBus.removeListener)
  }
}
