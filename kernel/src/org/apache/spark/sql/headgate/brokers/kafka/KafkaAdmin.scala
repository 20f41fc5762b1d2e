/** Owns what Python asks a Kafka cluster: its topics, and the transactions that a job has open. */
package org.apache.spark.sql.headgate.brokers.kafka

import java.util.{List => JList}

import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.{JsonNodeFactory, ObjectNode}
import org.apache.kafka.clients.admin._
import org.apache.kafka.common.{KafkaFuture, TopicPartition}
import org.apache.kafka.common.config.ConfigResource
import org.apache.kafka.common.errors.{AuthorizationException, TransactionalIdNotFoundException}

import org.apache.spark.sql.headgate.commit.DiskFiles

object KafkaAdmin {
  private val mapper = new ObjectMapper()
  private val Settings = Seq("cleanup.policy", "retention.ms", "max.message.bytes")
  private val Open = Seq(
    TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

  /** JSON, by topic: partitions, earliest, latest, config and operations; or error and message. */
  def topics(clientJson: String, topics: JList[String]): String = {
    val client = clientOf(clientJson)
    val json = JsonNodeFactory.instance.objectNode()
    try Admins.use(client)(new TopicReport(_, client, topics.asScala.toSeq).writeTo(json))
    catch {
      case failure: KafkaFailure => topics.asScala.foreach(t => putError(json.putObject(t), failure))
    }
    json.toString
  }

  /** JSON: the transactions of any sink group of a job that are open at this moment. */
  def openTransactions(clientJson: String, job: String): String =
    Admins.use(clientOf(clientJson)) { admin =>
      val prefix = s"headgate.${DiskFiles.fileName(job)}."
      val options = new ListTransactionsOptions().filterStates(Open.asJava)
      val listed = Admins.result(admin.listTransactions(options).all()).asScala.toSeq
        .filter(_.transactionalId.startsWith(prefix)).sortBy(_.transactionalId)
      val described = admin.describeTransactions(listed.map(_.transactionalId).asJava)
      val json = JsonNodeFactory.instance.arrayNode()
      listed.foreach { one =>
        ifStillThere(described.description(one.transactionalId)).foreach { found =>
          val entry = json.addObject().put("transactional_id", one.transactionalId)
            .put("state", found.state.toString)
          found.transactionStartTimeMs.ifPresent(since => entry.put("since_ms", since))
          val names = entry.putArray("topics")
          found.topicPartitions.asScala.map(_.topic).toSeq.distinct.sorted.foreach(names.add(_))
        }
      }
      json.toString
    }

  /** Makes a topic of one partition that keeps everything, unless it is there; whether it was made. */
  def createLasting(clientJson: String, topic: String): Boolean = {
    val client = clientOf(clientJson)
    Admins.use(client)(Topics.create(_, topic, client.getOrElse("bootstrap.servers", "")))
  }

  /** The id of a cluster, whatever list of its brokers leads there. */
  def clusterId(clientJson: String): String =
    Admins.use(clientOf(clientJson))(admin => Admins.result(admin.describeCluster().clusterId))

  private def ifStillThere(
      description: KafkaFuture[TransactionDescription]): Option[TransactionDescription] =
    try Some(Admins.result(description)).filter(d => Open.contains(d.state))
    catch { case _: TransactionalIdNotFoundException => None }

  private def clientOf(json: String): Map[String, String] =
    mapper.readTree(json).properties.asScala.map(e => e.getKey -> e.getValue.asText).toMap

  private def putError(entry: ObjectNode, failure: KafkaFailure): Unit =
    entry.put("error", failure.kind).put("message", failure.text)

  private final class TopicReport(admin: Admin, client: Map[String, String], topics: Seq[String]) {
    private val servers = client.getOrElse("bootstrap.servers", "")
    private val wanted = topics.distinct

    def writeTo(json: ObjectNode): Unit = {
      val options = new DescribeTopicsOptions().includeAuthorizedOperations(true)
      val described = admin.describeTopics(wanted.asJava, options).topicNameValues
      val configs = admin.describeConfigs(
        wanted.map(new ConfigResource(ConfigResource.Type.TOPIC, _)).asJava).values
      wanted.foreach { topic =>
        val entry = json.putObject(topic)
        try {
          val found = Admins.result(described.get(topic))
          entry.put("partitions", found.partitions.size)
          val at = found.partitions.asScala.map(p => new TopicPartition(topic, p.partition)).toSeq
          putOffsets(entry.putObject("earliest"), at, OffsetSpec.earliest())
          putOffsets(entry.putObject("latest"), at, OffsetSpec.latest())
          putConfig(entry, configs.get(new ConfigResource(ConfigResource.Type.TOPIC, topic)))
          Option(found.authorizedOperations).foreach { operations =>
            val names = entry.putArray("operations")
            operations.asScala.map(_.name).toSeq.sorted.foreach(names.add(_))
          }
        } catch {
          case error: Exception if !KafkaFailure.isInterrupt(error) =>
            entry.removeAll()
            putError(entry, KafkaFailure.of(error, servers, topic))
        }
      }
    }

    private def putOffsets(to: ObjectNode, at: Seq[TopicPartition], spec: OffsetSpec): Unit = {
      val listed = admin.listOffsets(at.map(_ -> spec).toMap.asJava)
      at.foreach(p => to.put(p.partition.toString, Admins.result(listed.partitionResult(p)).offset))
    }

    /** Who may write to a topic need not be allowed to see its settings: then they are left out. */
    private def putConfig(entry: ObjectNode, config: KafkaFuture[Config]): Unit =
      try {
        val found = Admins.result(config)
        val to = entry.putObject("config")
        Settings.foreach(name => Option(found.get(name)).foreach(c => to.put(name, c.value)))
      } catch { case _: AuthorizationException => entry.putNull("config") }
  }
}
