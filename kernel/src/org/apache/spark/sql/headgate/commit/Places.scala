/** Owns what kind of store an address of the home names, and so how files appear in it. */
package org.apache.spark.sql.headgate.commit

import org.apache.hadoop.fs.FileSystem

object Places {
  // What is written to these is there when the stream is closed, as a whole, and a name can be asked to be
  // free. A rename is a copy there, which others can see half done.
  private val Objects = Set("s3a", "gs")
  private val Address = "([A-Za-z][A-Za-z0-9+.-]+):.*".r

  /** Whether a plain path or a `file:` one is meant. */
  def isLocal(address: String): Boolean = address match {
    case Address(scheme) => scheme == "file"
    case _ => true
  }

  def isObjectStore(fs: FileSystem): Boolean = Objects.contains(fs.getUri.getScheme)
}
