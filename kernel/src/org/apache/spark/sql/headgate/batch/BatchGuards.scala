/** Owns what must hold before a batch begins and before it commits, beside the lease. */
package org.apache.spark.sql.headgate.batch

import java.util.concurrent.{ConcurrentHashMap, ExecutionException, Future}

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure}
import org.apache.spark.sql.headgate.spark.{QueryHadoop, RunningBatch, Session}
import org.apache.spark.util.ThreadUtils

/** Throws if a batch must not go on. */
trait BatchGuard {
  def check(): Unit
}

/** Guards by the Spark folder of the run that they are for, in the driver's own process. */
object BatchGuards {
  private val guards = new ConcurrentHashMap[String, BatchGuard]()
  private case class Begun(batch: RunningBatch, answer: Future[_])
  private val begun = new ConcurrentHashMap[BatchGuard, Begun]()
  private lazy val threads = ThreadUtils.newDaemonCachedThreadPool("headgate-guard", 8)

  def put(sparkFolder: String, guard: BatchGuard, hadoop: Configuration): Unit =
    guards.put(nameOf(new Path(sparkFolder), hadoop), guard)

  def remove(sparkFolder: String, hadoop: Configuration): Unit =
    Option(guards.remove(nameOf(new Path(sparkFolder), hadoop))).foreach(begun.remove(_))

  /** Begins the check that the first task waits for, which may have to ask a broker, while the driver
    * still prepares the tasks.
    */
  def begin(session: Session): Unit = of(session).foreach { case (batch, guard) =>
    begun.compute(guard, (_, before) =>
      if (before != null && before.batch == batch) before
      else Begun(batch, threads.submit((() => guard.check()): Runnable)))
  }

  /** Checks the guard of the batch that runs on this thread, if there is one, before its first task: none
    * that commits by itself may have begun. If that check was begun for this batch, it is the one.
    */
  def checkBeforeTasks(session: Session): Unit = of(session).foreach { case (batch, guard) =>
    val before = begun.remove(guard)
    if (before == null || before.batch != batch) guard.check()
    else try before.answer.get() catch { case e: ExecutionException => throw e.getCause }
  }

  /** Checks it again when all tasks have read their rows, before the driver commits any. */
  def checkBeforeCommit(session: Session): Unit = of(session).foreach { case (_, guard) => guard.check() }

  private def of(session: Session): Option[(RunningBatch, BatchGuard)] =
    if (guards.isEmpty) None
    else for {
      batch <- RunningBatch.of(session)
      folder = new Path(batch.checkpointLocation).getParent
      guard <- Option(guards.get(nameOf(folder, QueryHadoop.of(session))))
    } yield (batch, guard)

  private def nameOf(folder: Path, hadoop: Configuration): String =
    folder.getFileSystem(hadoop).makeQualified(folder).toString
}

/** A topic of a source is another one than that which its offsets are of. */
class TopicReplacedException(val coded: Coded)
  extends IllegalStateException(coded.line) with CodedFailure
