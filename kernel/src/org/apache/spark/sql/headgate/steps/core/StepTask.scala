package org.apache.spark.sql.headgate.steps.core

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.headgate.spark.TaskSettings

/** One partition of one batch of a stateful step: it gives its rows one by one until it has ended. */
abstract class StepTask extends Iterator[InternalRow] {
  var rowsOut = 0L; var rowsStored = 0L; var rowsRemoved = 0L

  /** By name, what the operator's own metrics get ([[StatefulStep]]'s `sums`). */
  def sums: Seq[(String, Long)] = Nil

  /** The row that is given next, if there is one. */
  protected var current: InternalRow = null
  protected var ended = false
  private val settings = new TaskSettings

  /** Does some more, which leaves a row in `current`, or gives none, or ends the task. */
  protected def work(): Unit

  override final def hasNext: Boolean = {
    if (current == null && !ended) settings.within { while (current == null && !ended) work() }
    current != null
  }

  override final def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException
    val row = current
    current = null
    row
  }
}
