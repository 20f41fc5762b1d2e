package org.apache.spark.sql.headgate.batch

import java.lang.{Long => JLong}
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}
import org.apache.spark.sql.headgate.spark.RunningBatch

/**
 * A stateful step must be executed once a batch: were a shared stream planned twice without its
 * exchange being reused, both copies would write the same state. That is a bug of ours, so fail.
 */
object OnceABatch {
  private val last = new ConcurrentHashMap[(UUID, String), JLong]()

  def check(batch: RunningBatch, step: String): Unit = {
    val before = last.put((batch.runId, step), batch.id)
    if (before != null && before.longValue == batch.id)
      throw new CodedStateException(Coded("STEP_TWICE", "step" -> step, "batch" -> batch.id))
  }

  def forget(runId: UUID): Unit = last.keySet.removeIf(_._1 == runId)
}
