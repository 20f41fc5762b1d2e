package org.apache.spark.sql.headgate.spark

import org.apache.spark.sql.execution.streaming.runtime.StreamExecution
import org.apache.spark.sql.streaming.StreamingQueryListener
import org.apache.spark.sql.streaming.StreamingQueryListener._

/** Does something once, when a query has ended. */
object QueryEnd {
  def of(query: StreamExecution)(body: => Unit): Unit = {
    val session = query.sparkSession
    val runId = query.runId
    session.streams.addListener(new StreamingQueryListener {
      override def onQueryStarted(event: QueryStartedEvent): Unit = ()
      override def onQueryProgress(event: QueryProgressEvent): Unit = ()
      override def onQueryTerminated(event: QueryTerminatedEvent): Unit =
        if (event.runId == runId) {
          body
          session.streams.removeListener(this)
        }
    })
  }
}
