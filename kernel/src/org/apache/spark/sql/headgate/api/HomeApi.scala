/** Owns trying a home out, as Python calls it. */
package org.apache.spark.sql.headgate.api

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}

import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.sql.headgate.spark.{CheckpointFiles, Sessions}

object HomeApi {

  /** Writes a file of that name as entries of Spark's logs are written, twice, reads it and deletes it.
    *
    * @return what is wrong with the store's answers, or null
    */
  def attempt(session: ApiSession, file: String): String = {
    val path = new Path(file)
    val files = CheckpointFiles.of(path.getParent, Sessions.hadoop(Sessions.of(session)))
    def write(text: String): Unit = {
      val out = files.createAtomic(path, overwriteIfPossible = false)
      out.write(text.getBytes(UTF_8))
      out.close()
    }
    try {
      write("first")
      val twice = try { write("second"); true } catch { case _: FileAlreadyExistsException => false }
      val in = files.open(path)
      val found = try new String(in.readAllBytes(), UTF_8) finally in.close()
      if (twice) "the store replaces an object that was to be new"
      else if (found != "first") s"the store gives '$found' for what was written"
      else null
    } finally files.delete(path)
  }
}
