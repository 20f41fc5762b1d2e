/** Owns the places where a test can make a commit crash. */
package org.apache.spark.sql.headgate.sink

import java.util.concurrent.ConcurrentHashMap

/** What an armed failpoint throws. */
class HeadgateCrash(message: String) extends RuntimeException(message)

/** Crashes on request, once, at a point of a run's commit:
  *
  *  - `before_sink`: before anything is committed
  *  - `mid_sink`: after the commit point of the first sink that has rows, before it is all visible
  *  - `after_sink`: after all sinks and the journal, before Spark's own commit
  *  - `before_commit`, `after_commit`: around Spark's own commit; only by HEADGATE_HALT
  *
  * With the environment variable `HEADGATE_HALT=<point>:<batch>` the whole process dies there.
  */
object Failpoints {
  val BeforeSink = "before_sink"
  val MidSink = "mid_sink"
  val AfterSink = "after_sink"
  val BeforeCommit = "before_commit"
  val AfterCommit = "after_commit"

  private val armed = ConcurrentHashMap.newKeySet[(String, String)]()
  private val halt = Option(System.getenv("HEADGATE_HALT")).getOrElse("")

  def arm(run: String, point: String): Unit = {
    require(Set(BeforeSink, MidSink, AfterSink).contains(point), s"no failpoint '$point'")
    armed.add((run, point))
  }

  def disarm(run: String): Unit = armed.removeIf(_._1 == run)

  private[headgate] def haltAt(point: String, batch: String): Unit =
    if (halt == s"$point:$batch") Runtime.getRuntime.halt(137)

  private[sink] def reach(run: String, point: String, batch: Long): Unit = {
    haltAt(point, batch.toString)
    if (armed.remove((run, point))) {
      throw new HeadgateCrash(s"HEADGATE_CRASH $point of batch $batch, as a test asked")
    }
  }
}
