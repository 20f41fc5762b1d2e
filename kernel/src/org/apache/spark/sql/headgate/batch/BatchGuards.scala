/** Owns what must hold before a batch begins and before it commits, beside the lease. */
package org.apache.spark.sql.headgate.batch

import java.util.concurrent.ConcurrentHashMap

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure}
import org.apache.spark.sql.headgate.spark.{QueryHadoop, RunningBatch, Session}

/** Throws if a batch must not go on. */
trait BatchGuard {
  def check(): Unit
}

/** Guards by the Spark folder of the run that they are for, in the driver's own process. */
object BatchGuards {
  private val guards = new ConcurrentHashMap[String, BatchGuard]()

  def put(sparkFolder: String, guard: BatchGuard, hadoop: Configuration): Unit =
    guards.put(nameOf(new Path(sparkFolder), hadoop), guard)

  def remove(sparkFolder: String, hadoop: Configuration): Unit =
    guards.remove(nameOf(new Path(sparkFolder), hadoop))

  /** Checks the guard of the batch that runs on this thread, if there is one.
    *
    * The sink calls it before the first task of a batch, so that no task that commits by itself has
    * begun, and again when all tasks have read their rows, before the driver commits any.
    */
  def check(session: Session): Unit = if (!guards.isEmpty) {
    RunningBatch.of(session).foreach { batch =>
      val folder = new Path(batch.checkpointLocation).getParent
      Option(guards.get(nameOf(folder, QueryHadoop.of(session)))).foreach(_.check())
    }
  }

  private def nameOf(folder: Path, hadoop: Configuration): String =
    folder.getFileSystem(hadoop).makeQualified(folder).toString
}

/** A topic of a source is another one than that which its offsets are of. */
class TopicReplacedException(val coded: Coded)
  extends IllegalStateException(coded.line) with CodedFailure
