/** Owns making Kafka's clients: which of their properties are the user's, and which are ours. */
package org.apache.spark.sql.headgate.brokers.kafka

import java.util.Properties

import org.apache.kafka.clients.admin.{Admin, AdminClientConfig}
import org.apache.kafka.clients.consumer.{ConsumerConfig, KafkaConsumer}
import org.apache.kafka.clients.producer.{KafkaProducer, ProducerConfig}
import org.apache.kafka.common.serialization.{ByteArrayDeserializer, ByteArraySerializer}

/** @param transactionalId null for a producer without transactions, which any task may take */
private[headgate] case class ProducerKey(
    client: Map[String, String], transactionalId: String, timeoutMs: Int, batchBytes: Int)

private[headgate] object Clients {
  type Producer = KafkaProducer[Array[Byte], Array[Byte]]
  type Consumer = KafkaConsumer[Array[Byte], Array[Byte]]

  /** A broker that does not answer for so long counts as unreachable. */
  val PatienceMs = 15000

  def producer(key: ProducerKey): Producer = {
    import key.client
    val defaults = Map(
      ProducerConfig.LINGER_MS_CONFIG -> "10",
      ProducerConfig.BATCH_SIZE_CONFIG -> key.batchBytes.toString,
      ProducerConfig.BUFFER_MEMORY_CONFIG -> (64 << 20).toString,
      ProducerConfig.MAX_BLOCK_MS_CONFIG -> "30000",
      ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG -> deliveryTimeoutMs(client).toString)
    val ours = Map(
      ProducerConfig.ACKS_CONFIG -> "all",
      ProducerConfig.ENABLE_IDEMPOTENCE_CONFIG -> "true") ++
      Option(key.transactionalId).toSeq.flatMap(id => Seq(
        ProducerConfig.TRANSACTIONAL_ID_CONFIG -> id,
        ProducerConfig.TRANSACTION_TIMEOUT_CONFIG -> key.timeoutMs.toString))
    val users = client - ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG -
      ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG - ProducerConfig.TRANSACTIONAL_ID_CONFIG
    withOurLoader(new KafkaProducer(
      properties(defaults ++ users ++ ours), new ByteArraySerializer, new ByteArraySerializer))
  }

  /** How long a record may be on its way to the broker. */
  def deliveryTimeoutMs(client: Map[String, String]): Int = {
    // The client refuses one below linger and request timeout, which are the user's to choose.
    val least = number(client, ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, 30000) +
      number(client, ProducerConfig.LINGER_MS_CONFIG, 10)
    number(client, ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, math.max(60000, least))
  }

  def admin(client: Map[String, String]): Admin = {
    val request = number(client, AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG, PatienceMs)
    val defaults = Map(
      AdminClientConfig.REQUEST_TIMEOUT_MS_CONFIG -> request.toString,
      AdminClientConfig.DEFAULT_API_TIMEOUT_MS_CONFIG -> math.max(request, PatienceMs).toString)
    withOurLoader(Admin.create(properties(defaults ++ client)))
  }

  /** Reads partitions that it is assigned; belongs to no group.
    *
    * @param committed whether records of open and aborted transactions are left out
    */
  def consumer(client: Map[String, String], committed: Boolean): Consumer = {
    val request = number(client, ConsumerConfig.REQUEST_TIMEOUT_MS_CONFIG, PatienceMs)
    val defaults = Map(
      ConsumerConfig.REQUEST_TIMEOUT_MS_CONFIG -> request.toString,
      ConsumerConfig.DEFAULT_API_TIMEOUT_MS_CONFIG -> math.max(request, PatienceMs).toString)
    val ours = Map(
      ConsumerConfig.ISOLATION_LEVEL_CONFIG ->
        (if (committed) "read_committed" else "read_uncommitted"),
      ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG -> "false",
      ConsumerConfig.AUTO_OFFSET_RESET_CONFIG -> "earliest",
      ConsumerConfig.ALLOW_AUTO_CREATE_TOPICS_CONFIG -> "false")
    val users = client - ConsumerConfig.GROUP_ID_CONFIG -
      ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG - ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG
    withOurLoader(new KafkaConsumer(
      properties(defaults ++ users ++ ours), new ByteArrayDeserializer, new ByteArrayDeserializer))
  }

  private def number(client: Map[String, String], name: String, otherwise: Int): Int =
    client.get(name).flatMap(_.trim.toIntOption).getOrElse(otherwise)

  private def properties(all: Map[String, String]): Properties = {
    val made = new Properties()
    all.foreach { case (name, value) => made.put(name, value) }
    made
  }

  /** Kafka loads classes that are named in properties by the thread's loader, whichever that is. */
  private def withOurLoader[T](make: => T): T = {
    val thread = Thread.currentThread()
    val before = thread.getContextClassLoader
    thread.setContextClassLoader(classOf[Admin].getClassLoader)
    try make finally thread.setContextClassLoader(before)
  }
}
