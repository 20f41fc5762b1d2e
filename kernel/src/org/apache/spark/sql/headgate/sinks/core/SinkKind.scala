/** Owns what a kind of sink must answer. */
package org.apache.spark.sql.headgate.sinks.core

import org.apache.spark.sql.headgate.commit.{Marker, Owner}

/** A kind of sink: log, files, kafka and so on. One instance serves all jobs of a process.
  *
  * A kind is a class with a constructor without parameters, named in the file
  * `META-INF/services/org.apache.spark.sql.headgate.sinks.core.SinkKind` of its jar: so a jar
  * of a user's can bring one (see [[SinkKinds]]). Its class is loaded with all others, also where the
  * client of its system is missing; what needs that client stands in the classes that `of` makes.
  */
trait SinkKind {

  /** What `kind` says in the spec of such a sink. */
  def name: String

  /** The options of a sink, out of its own part of the spec; refuses what cannot work. */
  def options(spec: SpecNode): SinkOptions

  /** The sinks of this kind in a job; touches nothing yet.
    *
    * @param sinks at least one; their options are those that this kind made
    * @param fsync whether what is committed survives a power cut
    */
  def of(job: JobSpec, sinks: Seq[SinkSpec], fsync: Boolean): JobSinks
}

/** What a sink has beside its name. */
trait SinkOptions {

  /** Whether rows are numbered by their place in their task, and so must come in one order. */
  def ordered: Boolean = false
}

/** The sinks of one kind in a job, on the driver. */
trait JobSinks {

  /** Whether rows are out when their task commits, and not only when the driver does: a driver that
    * lost its lease must start no such task.
    */
  def commitInTasks: Boolean = false

  /** Finishes what a crash left half visible. Called before a batch's first task writes. */
  def recover(): Unit = ()

  /** What the tasks of a batch have to know; throws if an output belongs to another home's job, or
    * has the batch's number for other rows.
    */
  def prepare(batch: BatchWrite): TaskPlan

  /** Makes one sink's rows of a batch visible, unless they are already.
    *
    * @param mark what the sink leaves when it has the batch
    * @param messages of the tasks that wrote it, in the order of their numbers
    * @param committed to be called at the commit point, when there is no way back, if there are rows
    */
  def commit(sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit

  /** Removes what the tasks of a failed batch left, unless it is committed after all. */
  def abort(sink: SinkSpec, batch: Long, messages: Seq[SinkMessage]): Unit = ()

  /** By the number of a sink, the markers of this run's last batches that are out. Who calls it must
    * hold the job's lease.
    */
  def markers(): Map[Int, Seq[Marker]]

  /** By the number of a sink, whose its output is; those that nobody owns are left out. */
  def owners(): Map[Int, Owner] = Map.empty

  /** Makes the outputs this job's; one that nobody has written yet becomes its own when it does. */
  def takeOver(): Unit = ()

  /** Waits, not for long, until readers see all that is committed; whether they do. */
  def awaitReadable(): Boolean = true
}

/** What the tasks of a batch have to know of all sinks of a kind. */
trait TaskPlan extends Serializable {
  def open(task: TaskPlace): TaskSinks
}

/** The sinks of a kind in one task. */
trait TaskSinks {

  /** Called once for each sink that the task has rows for. */
  def writer(sink: Int): SinkWriter

  /** Called last of all, when the writers of all kinds have finished. */
  def commit(): Unit = ()

  /** Never waits and never throws. */
  def abort(): Unit = ()
}
