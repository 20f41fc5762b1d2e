/** Owns the driver's side of a job's Kafka sinks. */
package org.apache.spark.sql.headgate.sinks.kafka

import java.util.UUID
import java.util.concurrent.{ConcurrentHashMap, TimeUnit}

import scala.jdk.CollectionConverters._

import org.apache.kafka.clients.admin.{Admin, ListTransactionsOptions, TransactionState}

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.headgate.brokers.kafka.{Admins, Clients}
import org.apache.spark.sql.headgate.commit.{Marker, Owner}
import org.apache.spark.sql.headgate.sinks.core.JobSpec
import org.apache.spark.sql.headgate.spark.{QueryEnd, RunningBatch}

/** Called by the sink only if there is a Kafka sink: the classes of Kafka's client may be missing. */
object KafkaDriver {
  private val plans = new ConcurrentHashMap[UUID, KafkaPlan]()

  /** What the tasks of a batch have to know; made once for each start of a query.
    *
    * Spark makes the write anew for every batch (V2Writes, WriteToMicroBatchDataSource), so what
    * lives as long as the query does is kept here.
    *
    * @param tasks how many tasks the batch has
    * @param mark of the batch
    */
  def plan(session: SparkSession, spec: JobSpec, tasks: Int, mark: Option[Marker]): KafkaPlan =
    started(session, spec, tasks).copy(mark = mark)

  private def started(session: SparkSession, spec: JobSpec, tasks: Int): KafkaPlan =
    RunningBatch.query(session) match {
      case None => start(spec, UUID.randomUUID(), tasks)
      case Some(query) =>
        Option(plans.get(query.runId)).getOrElse {
          val made = start(spec, query.runId, tasks)
          plans.put(query.runId, made)
          // on executors, producers are closed when they have been idle for long
          QueryEnd.of(query) {
            plans.remove(query.runId)
            Producers.closeOf(query.runId.toString)
          }
          made
        }
    }

  private def start(spec: JobSpec, id: UUID, tasks: Int): KafkaPlan =
    KafkaPlan(KafkaGroup.of(spec).map { group =>
      Admins.use(group.client)(admin => new GroupStart(group, admin).plan(id.toString, tasks))
    }.toArray)

  /** By sink, the last batches of the run that its tasks have out. */
  def markers(spec: JobSpec): Map[String, Seq[Marker]] =
    KafkaGroup.of(spec).flatMap { group =>
      val found = Admins.use(group.client)(new GroupStart(group, _).markers()).values.toSeq
      group.sinks.keys.map(i => spec.sinks(i).name -> found)
    }.toMap

  /** By sink, whose its topic is; sinks of topics that are nobody's are left out. */
  def owners(spec: JobSpec): Map[String, Owner] =
    KafkaGroup.of(spec).flatMap { group =>
      val found = Admins.use(group.client)(new GroupStart(group, _).owners())
      for ((i, topic) <- group.sinks.toSeq; owner <- found.get(topic)) yield spec.sinks(i).name -> owner
    }.toMap

  def takeOver(spec: JobSpec): Unit = KafkaGroup.of(spec).foreach { group =>
    Admins.use(group.client)(new GroupStart(group, _).takeOver())
  }

  /** The id of a cluster, whatever list of its brokers leads there. */
  def clusterId(client: Map[String, String]): String =
    Admins.use(client)(admin => Admins.result(admin.describeCluster().clusterId))

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
