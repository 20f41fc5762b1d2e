/** Owns what the driver knows of a batch that is about to be written. */
package org.apache.spark.sql.headgate.sinks.core

import org.apache.spark.sql.headgate.commit.Marker
import org.apache.spark.sql.headgate.spark.{Session, Sessions}
import org.apache.spark.sql.types.StructType

/** @param tasks how many tasks the batch has
  * @param mark what its sinks leave when they have it; none outside of a query
  * @param structs the columns of each sink, by its number
  * @param outUntil batches up to it are not written, see [[JobSpec]]
  */
final class BatchWrite(
    val session: Session,
    val tasks: Int,
    val mark: Option[Marker],
    val structs: Seq[StructType],
    outUntil: Long) {

  val timeZone: String = Sessions.timeZone(session)

  /** The last batch that is out, or -1; throws if the sink has this batch's number for other rows. */
  def outBy(marker: Option[Marker], sink: SinkSpec): Long = {
    for (found <- marker; running <- mark if running.batch > outUntil) {
      found.holds(running, sink.name)
    }
    marker.fold(-1L)(_.batch)
  }
}
