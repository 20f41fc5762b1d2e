/** Owns that no batch commits rows of a topic that took the place of the one it was planned for. */
package org.apache.spark.sql.headgate.sources.kafka

import java.util.concurrent.TimeUnit

import scala.annotation.tailrec
import scala.jdk.CollectionConverters._

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.sql.headgate.batch.{BatchGuard, BatchGuards, TopicReplacedException}
import org.apache.spark.sql.headgate.brokers.kafka.{Admins, KafkaFailure}
import org.apache.spark.sql.headgate.failures.Coded
import org.apache.spark.sql.headgate.spark.{CheckpointFiles, Sessions}

private[headgate] case class GuardedSource(name: String, client: Map[String, String], choice: TopicChoice)

/** @param file  the run's topics.json: it gets the ids of topics that a pattern finds later
  * @param known what stands in it
  */
private[headgate] final class TopicGuard(
    sources: Seq[GuardedSource], file: Path, known: ObjectNode, hadoop: Configuration)
  extends BatchGuard {

  override def check(): Unit = synchronized {
    val grew = sources.groupBy(_.client).toSeq.flatMap { case (client, same) =>
      val now = patiently(Admins.use(client)(TopicIds.of(_, same.map(_.choice))))
      same.map(learn(_, now))
    }
    if (grew.contains(true)) write()
  }

  /** Throws if a topic has another id than before; whether there was one without an id yet. */
  private def learn(source: GuardedSource, now: TopicIds): Boolean = {
    val mine = now.topics.filter { case (topic, _) => source.choice.has(topic) }
    val before = known.get("sources").get(source.name) match {
      case found: ObjectNode => found
      case _ => known.get("sources").asInstanceOf[ObjectNode].putObject(source.name)
    }
    if (!before.hasNonNull("cluster")) before.put("cluster", now.cluster)
    val topics = before.get("topics") match {
      case found: ObjectNode => found
      case _ => before.putObject("topics")
    }
    mine.toSeq.sorted.map { case (topic, id) =>
      val was = topics.path(topic).asText("")
      val cluster = before.path("cluster").asText("")
      val moved = now.cluster != null && cluster.nonEmpty && cluster != now.cluster
      if (was.nonEmpty && (was != id || moved)) throw new TopicReplacedException(
        Coded("TOPIC_REPLACED", "step" -> source.name,
          "address" -> s"kafka://${source.client.getOrElse("bootstrap.servers", "")}/$topic",
          "was" -> was, "is" -> id))
      if (was.isEmpty) topics.put(topic, id)
      was.isEmpty
    }.contains(true)
  }

  private def write(): Unit = CheckpointFiles.write(
    CheckpointFiles.of(file.getParent, hadoop), file, TopicGuard.mapper.writeValueAsBytes(known))

  /** A broker that does not answer at once need not end a batch: tasks wait for it as long. */
  private def patiently[T](body: => T): T = {
    val until = System.nanoTime() + TimeUnit.SECONDS.toNanos(TopicGuard.PatienceSeconds)
    @tailrec def again(): T = {
      val answer = try Right(body) catch {
        case e: KafkaFailure if e.kind == KafkaFailure.Unreachable && System.nanoTime() < until => Left(e)
      }
      answer match { case Right(found) => found; case Left(_) => Thread.sleep(500); again() }
    }
    again()
  }
}

object TopicGuard {
  private val PatienceSeconds = 45L
  private val mapper = new ObjectMapper()

  /** @param sources JSON: by source, client (properties), topic and pattern (whether it is one)
    * @param known   JSON: what stands in the run's topics.json, which is at `file`
    */
  def put(session: ApiSession, sparkFolder: String, file: String, sources: String, known: String): Unit = {
    val hadoop = Sessions.hadoop(Sessions.of(session))
    val guarded = mapper.readTree(sources).properties.asScala.map { e =>
      val source: JsonNode = e.getValue
      GuardedSource(e.getKey, TopicIds.clientOf(source.get("client").toString),
        TopicChoice(source.get("topic").asText, source.get("pattern").asBoolean))
    }.toSeq
    BatchGuards.put(sparkFolder,
      new TopicGuard(guarded, new Path(file), mapper.readTree(known).asInstanceOf[ObjectNode], hadoop), hadoop)
  }
}
