/** Owns the sinks of a job by their kinds, on the driver. */
package org.apache.spark.sql.headgate.sinks.core

/** @param fsync whether what is committed survives a power cut */
final class JobOutputs(spec: JobSpec, fsync: Boolean) {
  private val byKind: Map[SinkKind, JobSinks] = kinds.map { kind =>
    kind -> kind.of(spec, spec.sinks.filter(_.kind == kind), fsync)
  }.toMap

  /** In the order of their first sinks. */
  def kinds: Seq[SinkKind] = spec.sinks.map(_.kind).distinct

  def of(kind: SinkKind): JobSinks = byKind(kind)
  def all: Seq[JobSinks] = kinds.map(byKind)
}
