/** Owns the driver's side of a job's Kafka sinks. */
package org.apache.spark.sql.headgate.kafka

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.admin.{Admin, ListTransactionsOptions, TransactionState}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.headgate.{QueryEnd, RunningBatch}
import org.apache.spark.sql.headgate.sink.JobSpec

/** Called by the sink only if there is a Kafka sink: the classes of Kafka's client may be missing. */
object KafkaDriver {
  private val started = new ConcurrentHashMap[UUID, KafkaPlan]()

  /** What the tasks of a batch have to know; made once for each start of a query.
    *
    * Spark makes the write anew for every batch (V2Writes, WriteToMicroBatchDataSource), so what
    * lives as long as the query does is kept here.
    *
    * @param tasks how many tasks the batch has
    */
  def plan(session: SparkSession, spec: JobSpec, tasks: Int): KafkaPlan =
    RunningBatch.query(session) match {
      case None => start(spec, UUID.randomUUID(), tasks)
      case Some(query) =>
        Option(started.get(query.runId)).getOrElse {
          val made = start(spec, query.runId, tasks)
          started.put(query.runId, made)
          // on executors, producers are closed when they have been idle for long
          QueryEnd.of(query) {
            started.remove(query.runId)
            Producers.closeOf(query.runId.toString)
          }
          made
        }
    }

  private def start(spec: JobSpec, id: UUID, tasks: Int): KafkaPlan =
    KafkaPlan(KafkaGroup.of(spec).map { group =>
      Admins.use(group.client)(admin => new GroupStart(group, admin).plan(id.toString, tasks))
    }.toArray)

  /** By sink, the last batch of the run that any task has out, or -1. */
  def committed(spec: JobSpec): Map[String, Long] =
    KafkaGroup.of(spec).flatMap { group =>
      val last = Admins.use(group.client)(admin => new GroupStart(group, admin).lastBatch())
      group.sinks.keys.map(i => spec.sinks(i).name -> last)
    }.toMap

  /** Waits until readers of committed records can see all that the job has committed; whether they can.
    *
    * For a producer a commit is over when the coordinator has written it down. The marks in the
    * partitions, at which readers wait, follow a moment later.
    */
  def awaitReadable(spec: JobSpec): Boolean = {
    val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Clients.PatienceMs)
    KafkaGroup.of(spec).filter(_.exactlyOnce).forall { group =>
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
