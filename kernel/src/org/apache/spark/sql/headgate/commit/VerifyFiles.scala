/** Owns the question whether files of a checkpoint are there and whole. */
package org.apache.spark.sql.headgate.commit

import java.io.{FileNotFoundException, InputStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{List => JList, Map => JMap}
import java.util.zip.{CheckedInputStream, CRC32C}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{ChecksumException, Path}

import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.sql.headgate.spark.{CheckpointFiles, Sessions}

/**
 * Reads whole files through Hadoop, which compares them with its own `.X.crc` where there is one,
 * and then with Spark's `X.crc` (size and CRC-32C).
 */
object VerifyFiles {
  private val FilesATask = 64

  /** By path, what is wrong with it; paths with which nothing is wrong are left out. */
  def run(api: ApiSession, paths: JList[String]): JMap[String, String] = {
    val session = Sessions.of(api)
    val all = paths.asScala.toSeq
    val hadoop = Sessions.broadcastHadoop(session)
    val slices = math.max(1, math.min((all.length + FilesATask - 1) / FilesATask, 1024))
    val wrong = session.sparkContext.parallelize(all, slices).flatMap { path =>
      wrongWith(new Path(path), hadoop.value.value).map(path -> _)
    }.collect()
    wrong.toMap.asJava
  }

  private def wrongWith(path: Path, hadoop: Configuration): Option[String] =
    try {
      val fs = path.getFileSystem(hadoop)
      val side = path.suffix(".crc")
      val expected =
        if (path.getName.endsWith(".crc") || !fs.exists(side)) None
        else Some(CheckpointFiles.checksum(new String(all(fs.open(side)), UTF_8)))
      val in = new CheckedInputStream(fs.open(path), new CRC32C())
      val size = try in.transferTo(java.io.OutputStream.nullOutputStream()) finally in.close()
      expected.flatMap { case (bytes, sum) =>
        if (bytes != size) Some(s"it has $size bytes instead of $bytes")
        else if (sum != in.getChecksum.getValue.toInt) Some("its checksum is another")
        else None
      }
    } catch {
      case _: FileNotFoundException => Some("it is missing")
      case _: ChecksumException => Some("its checksum is another")
      case NonFatal(e) => Some(s"it cannot be read (${e.getMessage})")
    }

  private def all(in: InputStream): Array[Byte] = try in.readAllBytes() finally in.close()
}
