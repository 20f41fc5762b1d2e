/** Owns the codes of what Spark, Java and RocksDB throw by themselves. */
package org.apache.spark.sql.headgate.failures

import java.io.{FileNotFoundException, IOException}
import java.nio.file.{AccessDeniedException, FileSystemException, ReadOnlyFileSystemException}
import java.util.concurrent.TimeoutException

import org.apache.hadoop.security.AccessControlException
import org.rocksdb.{RocksDBException, Status}

import org.apache.spark._
import org.apache.spark.sql.headgate.spark.PythonFailures

/** By class, or by Spark's error condition. Where neither says it, by the words of the operating system or
  * by the frames that it was thrown in; each such place says so.
  */
object KnownFailures {
  private type Sign = Throwable => Boolean
  private val Frames = 14

  // What the clients of object stores throw. Their jars come with the home, so they have no classes here.
  private val StoreClients = Seq("software.amazon.awssdk.", "org.apache.hadoop.fs.s3a.",
    "org.apache.hadoop.fs.azurebfs.", "com.google.cloud.hadoop.")

  private val NoKeys = Set("NoAuthWithAWSException", "NoAwsCredentialsException")

  /** A full disk first: to who cannot load any state because of it, it looks like damaged state. */
  private val first: Seq[(String, Sign)] = Seq(
    "PYTHON_WORKER" -> PythonFailures.isWorkerGone,
    "DISK_FULL" -> isDiskFull,
    "READ_ONLY" -> isReadOnly,
    "BATCH_TAKEN" -> isCondition("CONCURRENT_STREAM_LOG_UPDATE"),
    "STATE_SCHEMA" -> isCondition("STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
      "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"),
    "STATE_FILES" -> isCondition("CANNOT_LOAD_STATE_STORE", "CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED"),
    "FETCH_TIMEOUT" -> isFetchTimeout,
    "OFFSET_GONE" -> isCondition("KAFKA_DATA_LOSS"))

  private val last: Seq[(String, Sign)] = Seq(
    "OUT_OF_MEMORY" -> (_.isInstanceOf[OutOfMemoryError]),
    "EXPRESSION" -> isExpression,
    "STORAGE" -> isStorage)

  /** The code of an exception and its causes, the outermost first. `others` knows the brokers' classes. */
  def codeOf(chain: Seq[Throwable], others: Seq[Throwable] => Option[String]): Option[String] =
    ofStore(chain).orElse(among(first, chain)).orElse(others(chain)).orElse(among(last, chain))

  /** An object store that refuses, or does not answer; one that says that a file is not there has answered. */
  private def ofStore(chain: Seq[Throwable]): Option[String] = {
    def denies(e: Throwable) = e.isInstanceOf[AccessDeniedException] || NoKeys.contains(e.getClass.getSimpleName)
    if (!chain.exists(e => StoreClients.exists(e.getClass.getName.startsWith(_)))) None
    else if (chain.exists(e => e.isInstanceOf[FileNotFoundException] || e.isInstanceOf[CodedFailure])) None
    else Some(if (chain.exists(denies)) "STORE_DENIED" else "STORE_UNREACHABLE")
  }

  private def among(signs: Seq[(String, Sign)], chain: Seq[Throwable]): Option[String] =
    signs.collectFirst { case (code, holds) if chain.exists(holds) => code }

  // Java has no class for a full disk: a FileSystemException has the system's words as its reason, and
  // streams have them in their message
  private def isDiskFull(error: Throwable): Boolean = error match {
    case e: RocksDBException => e.getStatus != null && e.getStatus.getSubCode == Status.SubCode.NoSpace ||
      isFullDiskText(e)
    case e: IOException => isFullDiskText(e)
    case e: SparkException => isFullDiskText(e)
    case _ => false
  }

  private def isFullDiskText(e: Throwable): Boolean =
    says(e, "No space left on device") || says(e, "Disk quota exceeded")

  private def isReadOnly(error: Throwable): Boolean = error match {
    case _: ReadOnlyFileSystemException => true
    case e @ (_: IOException | _: RocksDBException) => says(e, "Read-only file system")
    case _ => false
  }

  private def isCondition(names: String*)(error: Throwable): Boolean = error match {
    case e: SparkThrowable =>
      val condition = e.getCondition
      condition != null && names.exists(n => condition == n || condition.startsWith(s"$n."))
    case _ => false
  }

  /** Spark's consumer for Kafka waits in vain with a class of Java's. */
  private def isFetchTimeout(error: Throwable): Boolean =
    error.isInstanceOf[TimeoutException] && thrownIn(error, "org.apache.spark.sql.kafka010.")

  private def isExpression(error: Throwable): Boolean = error match {
    case _: SparkArithmeticException | _: SparkNumberFormatException | _: SparkDateTimeException |
        _: SparkRuntimeException => true
    case _ => false
  }

  private def isStorage(error: Throwable): Boolean = error match {
    case _: FileSystemException | _: AccessControlException | _: FileNotFoundException => true
    case e: IOException => e.getClass == classOf[IOException] // not those of networks
    case _ => false
  }

  private def says(error: Throwable, words: String): Boolean =
    String.valueOf(error.getMessage).contains(words)

  private def thrownIn(error: Throwable, prefix: String): Boolean =
    error.getStackTrace.take(Frames).exists(_.getClassName.startsWith(prefix))
}
