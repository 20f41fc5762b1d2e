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

  /** Begins the next check, which may have to ask a broker, while the driver prepares the batch's tasks. */
  def begin(session: Session): Unit = of(session).foreach { case (batch, guard) =>
    begun.compute(guard, (_, before) =>
      if (before != null && before.batch == batch) before
      else Begun(batch, threads.submit((() => guard.check()): Runnable)))
  }

  /** Checks the guard of the batch that runs on this thread, if there is one.
    *
    * The sink calls it before the first task of a batch, so that no task that commits by itself has
    * begun, and again when all tasks have read their rows, before the driver commits any. What was begun
    * for this batch serves the first of them.
    */
  def check(session: Session): Unit = of(session).foreach { case (batch, guard) =>
    val before = begun.remove(guard)
    if (before == null || before.batch != batch) guard.check()
    else try before.answer.get() catch { case e: ExecutionException => throw e.getCause }
  }

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
