/** Owns how files of this machine come into an S3 bucket. */
package org.apache.spark.sql.headgate.commit

import java.nio.file.{Files, Paths}

import org.apache.hadoop.fs.Path
import org.apache.hadoop.fs.s3a.S3AFileSystem

/**
 * Hadoop's S3A, which uploads files by the same client that it writes streams with.
 *
 * Its own `copyFromLocalFile`, by which Spark's state stores bring their tables, goes through the SDK's
 * asynchronous client. With the Netty of Spark 4.2 that one takes a server's `100 Continue` for the answer,
 * and the upload fails. Named in `fs.s3a.impl` by jvm/stores.py.
 */
class StreamedS3A extends S3AFileSystem {
  override def copyFromLocalFile(delete: Boolean, overwrite: Boolean, from: Path, to: Path): Unit = {
    val local = Paths.get(from.toUri.getPath)
    if (!overwrite || Files.isDirectory(local)) super.copyFromLocalFile(delete, overwrite, from, to)
    else {
      StoredFile.upload(this, local, to)
      if (delete) Files.deleteIfExists(local)
    }
  }
}
