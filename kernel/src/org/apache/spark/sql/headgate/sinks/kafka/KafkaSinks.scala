/** Owns the driver's side of a job's Kafka sinks. */
package org.apache.spark.sql.headgate.sinks.kafka

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.admin.{Admin, ListTransactionsOptions, TransactionState}

import org.apache.spark.sql.headgate.brokers.kafka.{Admins, Clients}
import org.apache.spark.sql.headgate.commit.{Marker, Owner}
import org.apache.spark.sql.headgate.sinks.core.{
  BatchWrite, JobSinks, JobSpec, JsonEncoding, SinkMessage, SinkSpec, TaskPlan, ValueEncoding}
import org.apache.spark.sql.headgate.spark.{RunningQuery, Session}
import org.apache.spark.sql.types.StructType

private[headgate] final class KafkaSinks(job: JobSpec, sinks: Seq[SinkSpec]) extends JobSinks {
  private val options = sinks.map(s => s.number -> s.options.asInstanceOf[KafkaOptions])
  private def groups: Seq[KafkaGroup] = KafkaGroup.of(job, options)

  override def commitInTasks: Boolean = true

  override def prepare(batch: BatchWrite): TaskPlan = KafkaPlan(
    KafkaSinks.started(batch.session)(start(_, batch.tasks)),
    options.map { case (n, o) => n -> plan(o, batch.structs(n)) }.toMap,
    batch.timeZone, batch.mark)

  private def plan(of: KafkaOptions, struct: StructType): KafkaSinkPlan = {
    val columns = StructType(struct.drop(of.hidden.length))
    val encoding = of.schema.fold[ValueEncoding](JsonEncoding)(_.encoding(of.topic, columns))
    KafkaSinkPlan(of.topic, of.hidden, struct, encoding)
  }

  private def start(id: UUID, tasks: Int): Array[GroupPlan] = groups.map { group =>
    Admins.use(group.client)(admin => new GroupStart(group, admin).plan(id.toString, tasks))
  }.toArray

  /** Nothing: the tasks have committed. */
  override def commit(
      sink: SinkSpec, mark: Marker, messages: Seq[SinkMessage], committed: () => Unit): Unit = ()

  override def markers(): Map[Int, Seq[Marker]] = groups.flatMap { group =>
    val found = Admins.use(group.client)(new GroupStart(group, _).markers()).values.toSeq
    group.sinks.keys.map(_ -> found)
  }.toMap

  override def owners(): Map[Int, Owner] = groups.flatMap { group =>
    val found = Admins.use(group.client)(new GroupStart(group, _).owners())
    for ((i, topic) <- group.sinks.toSeq; owner <- found.get(topic)) yield i -> owner
  }.toMap

  override def takeOver(): Unit = groups.foreach { group =>
    Admins.use(group.client)(new GroupStart(group, _).takeOver())
  }

  /** Waits until readers of committed records can see all that the job has committed; whether they can.
    *
    * For a producer a commit is over when the coordinator has written it down. The marks in the
    * partitions, at which readers wait, follow a moment later.
    */
  override def awaitReadable(): Boolean = {
    val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Clients.PatienceMs)
    groups.filter(_.exactlyOnce).forall { group =>
      Admins.use(group.client) { admin =>
        Iterator.continually(!isCommitting(admin, group)).tapEach(done => if (!done) Thread.sleep(20))
          .find(_ || System.nanoTime() >= until).get
      }
    }
  }

  private def isCommitting(admin: Admin, group: KafkaGroup): Boolean = {
    val options = new ListTransactionsOptions().filterStates(Seq(TransactionState.PREPARE_COMMIT).asJava)
    Admins.result(admin.listTransactions(options).all()).asScala
      .exists(t => KafkaGroup.taskOf(t.transactionalId, group.transactionalIdPrefix).isDefined)
  }
}

private object KafkaSinks {
  private val plans = new ConcurrentHashMap[UUID, Array[GroupPlan]]()

  /** The groups of the query that runs, made once for each start of it.
    *
    * Spark makes the write anew for every batch (V2Writes, WriteToMicroBatchDataSource), so what
    * lives as long as the query does is kept here.
    */
  def started(session: Session)(start: UUID => Array[GroupPlan]): Array[GroupPlan] =
    RunningQuery.of(session) match {
      case None => start(UUID.randomUUID())
      case Some(query) =>
        Option(plans.get(query.runId)).getOrElse {
          val made = start(query.runId)
          plans.put(query.runId, made)
          // on executors, producers are closed when they have been idle for long
          query.onEnd {
            plans.remove(query.runId)
            Producers.closeOf(query.runId.toString)
          }
          made
        }
    }
}
