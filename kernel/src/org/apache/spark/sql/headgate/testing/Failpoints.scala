/** Owns the places where a test can make a commit crash. */
package org.apache.spark.sql.headgate.testing

import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.atomic.AtomicBoolean

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure}

/** What an armed failpoint throws. */
class HeadgateCrash(val coded: Coded) extends RuntimeException(coded.line) with CodedFailure

/** Crashes on request, once, at a point of a run's commit:
  *
  *  - `before_sink`: before anything is committed
  *  - `mid_sink`: after the commit point of the first sink that has rows, before it is all visible
  *  - `after_sink`: after all sinks and the journal, before Spark's own commit
  *  - `before_transaction`, `in_transaction`, `after_transaction`: in one task of a Kafka sink, before
  *    its transaction, before the transaction's commit, and after it; of a Pulsar sink, before its
  *    first row, before the last rows are sent, and when all are acknowledged
  *  - `before_commit`, `after_commit`: around Spark's own commit; only by HEADGATE_HALT
  *
  * With the environment variable `HEADGATE_HALT=<point>:<batch>` the whole process dies there, in
  * that batch or, if it does not get there in it, in a later one. With `HEADGATE_FREEZE` it stops there
  * (SIGSTOP) with all of its process group, once, until somebody lets it go on.
  */
object Failpoints {
  val BeforeSink = "before_sink"
  val MidSink = "mid_sink"
  val AfterSink = "after_sink"
  val BeforeTransaction = "before_transaction"
  val TransactionBegun = "transaction_begun"
  val BeforeMarker = "before_marker"
  val InTransaction = "in_transaction"
  val AfterTransaction = "after_transaction"
  val BeforeCommit = "before_commit"
  val AfterCommit = "after_commit"

  private val Armable = Set(
    BeforeSink, MidSink, AfterSink, BeforeTransaction, TransactionBegun, BeforeMarker, InTransaction,
    AfterTransaction)

  private val armed = ConcurrentHashMap.newKeySet[(String, String)]()
  private val halt = named("HEADGATE_HALT")
  private val freeze = named("HEADGATE_FREEZE")
  private val frozen = new AtomicBoolean

  private def named(variable: String): Option[(String, Long)] =
    Option(System.getenv(variable)).map(_.split(':')).collect {
      case Array(point, batch) => (point, batch.toLong)
    }

  def arm(run: String, point: String): Unit = {
    require(Armable.contains(point), s"no failpoint '$point'")
    armed.add((run, point))
  }

  def disarm(run: String): Unit = armed.removeIf(_._1 == run)

  private[headgate] def haltAt(point: String, batch: Long): Unit = {
    // a batch that was committed meanwhile will not come again: a test would wait for it for ever
    def isHere(at: Option[(String, Long)]) = at.exists { case (where, first) => where == point && batch >= first }
    if (isHere(halt)) Runtime.getRuntime.halt(137)
    if (isHere(freeze) && frozen.compareAndSet(false, true)) {
      new ProcessBuilder("sh", "-c", "kill -STOP 0").start().waitFor()
    }
  }

  private[headgate] def reach(run: String, point: String, batch: Long): Unit = {
    haltAt(point, batch)
    throwIfArmed(run, point, batch)
  }

  /** In a task. A retry does not halt: else no attempt on any executor would ever get further. */
  private[headgate] def reachInTask(
      run: String, point: String, batch: Long, retry: Boolean): Unit = {
    if (!retry) haltAt(point, batch)
    throwIfArmed(run, point, batch)
  }

  private def throwIfArmed(run: String, point: String, batch: Long): Unit =
    if (armed.remove((run, point))) {
      throw new HeadgateCrash(Coded("CRASH", "point" -> point, "batch" -> batch))
    }
}
