/** Owns the driver's side of a job's tables. */
package org.apache.spark.sql.headgate.sinks.jdbc

import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import org.apache.spark.sql.headgate.commit.{Marker, Owner}
import org.apache.spark.sql.headgate.sinks.core._
import org.apache.spark.sql.headgate.spark.{RunningQuery, Session}
import org.apache.spark.sql.types.StructType

private[headgate] final class JdbcSinks(job: JobSpec, sinks: Seq[SinkSpec]) extends JobSinks {
  private def groups(start: String = "") = JdbcGroup.of(job, sinks, start)

  override def commitInTasks: Boolean = true

  override def prepare(batch: BatchWrite): TaskPlan = {
    val plans = JdbcSinks.started(batch.session)(id => groups(id.toString.take(8)).map {
      case (group, members) => start(group, members, batch.structs)
    }.toArray)
    JdbcPlan(plans, batch.timeZone, batch.mark)
  }

  /** 1. The tables of notes are made if they are missing, and those of sinks that say so.
    * 2. Every table must fit the rows.
    * 3. A table that another home's job of the same name writes is left alone: the start fails. The
    *    others are this run's from now on.
    * 4. Whatever still writes for the job is ended: what a killed driver left open is rolled back, and
    *    its tasks that live on wait for markers, or find that they are not to write any more.
    */
  private def start(
      group: JdbcGroup, members: Seq[(SinkSpec, JdbcOptions)], structs: Seq[StructType]): GroupPlan =
    Connections.use(group.access) { held =>
      val books = new Bookkeeping(held, job)
      books.create()
      // before anything waits for a lock that a dead driver's task has
      books.fence(group.prefix, group.access.name)
      val plans = members.map { case (sink, options) =>
        val struct = structs(sink.number)
        val table = new TargetTable(
          held, group.where(options), options.table, struct, options.hidden.length, options.key)
        if (options.create && table.found.isEmpty) table.create()
        SinkPlan(sink.number, sink.name, options, struct, table.fitting())
      }
      plans.foreach { plan =>
        val found = books.owner(plan.table.name)
        if (job.owner.isOther(found)) throw group.taken(plan, found.get)
        books.own(plan.table.name)
      }
      GroupPlan(group, plans)
    }

  /** Nothing: the tasks have committed. */
  override def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit = ()

  /** Whoever asks holds the job's lease, so what is still open is nobody's: it is ended here as at a start. */
  override def markers(): Map[Int, Seq[Marker]] = noted { (group, members, books, _) =>
    books.fence(group.prefix, group.access.name)
    val found = books.markers
    members.flatMap { case (sink, _) => found.get(sink.name).map(sink.number -> _) }
  }

  override def owners(): Map[Int, Owner] = noted { (_, members, books, held) =>
    for ((sink, options) <- members; owner <- books.owner(JdbcSinks.nameOf(held, options)))
      yield sink.number -> owner
  }

  override def takeOver(): Unit = noted { (_, members, books, held) =>
    members.map(m => JdbcSinks.nameOf(held, m._2)).distinct
      .filter(books.owner(_).isDefined).foreach(books.own)
    Seq.empty[(Int, Unit)]
  }

  /** What the tables of notes say, where there are some. */
  private def noted[T](
      read: (JdbcGroup, Seq[(SinkSpec, JdbcOptions)], Bookkeeping, Held) => Seq[(Int, T)]): Map[Int, T] =
    groups().flatMap { case (group, members) =>
      Connections.use(group.access) { held =>
        val books = new Bookkeeping(held, job)
        if (books.exist) read(group, members, books, held) else Nil
      }
    }.toMap
}

private object JdbcSinks {
  private val plans = new ConcurrentHashMap[UUID, Array[GroupPlan]]()

  /** Spark makes the write anew for every batch, so what lives as long as the query does is kept here. */
  def started(session: Session)(start: UUID => Array[GroupPlan]): Array[GroupPlan] =
    RunningQuery.of(session) match {
      case None => start(UUID.randomUUID())
      case Some(query) =>
        Option(plans.get(query.runId)).getOrElse {
          val made = start(query.runId)
          plans.put(query.runId, made)
          // on executors, connections are closed when they have been idle for long
          query.onEnd {
            plans.remove(query.runId)
            made.foreach(plan => Connections.closeOf(plan.group.access.name))
          }
          made
        }
    }

  /** The table's name as it is noted; of one that is gone as the user gave it. */
  def nameOf(held: Held, options: JdbcOptions): String =
    new TargetTable(held, "", options.table, new StructType(), 0, Nil).found.getOrElse(options.table)
}

/** @param mark of the batch; none outside of a query */
private[headgate] case class JdbcPlan(groups: Array[GroupPlan], timeZone: String, mark: Option[Marker])
  extends TaskPlan {
  override def open(task: TaskPlace): TaskSinks =
    new JdbcTasks(this, task.task, mark.filter(_.batch == task.batch).getOrElse(Marker(task.batch)))
}

/** The groups of a task, each with a transaction of its own. */
private[headgate] final class JdbcTasks(plan: JdbcPlan, task: Int, mark: Marker) extends TaskSinks {
  private val open = plan.groups.map(new GroupTask(_, task, mark, TaskPlace.isRetry))

  override def writer(sink: Int): SinkWriter = {
    val group = plan.groups.indexWhere(_.sinks.exists(_.number == sink))
    new TableWriter(open(group), plan.groups(group).sinks.find(_.number == sink).get, plan.timeZone)
  }

  override def commit(): Unit = open.foreach(_.commit())
  override def abort(): Unit = open.foreach(_.abort())
}
