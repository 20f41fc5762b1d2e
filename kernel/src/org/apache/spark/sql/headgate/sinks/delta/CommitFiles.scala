/** Owns which files on a local disk a commit of a Delta table consists of. */
package org.apache.spark.sql.headgate.sinks.delta

import java.net.URI
import java.nio.file.{Path, Paths}

import org.apache.hadoop.fs.{Path => HadoopPath}

import org.apache.spark.sql.delta.actions.{Action, AddCDCFile, AddFile, DeletionVectorDescriptor}

private object CommitFiles {

  /** Its rows, the marks of deleted ones, the rows of its change feed, and its entry in the log. A table
    * that was cloned may name files elsewhere: they are not the commit's.
    */
  def of(root: Path, version: Long, actions: Seq[Action]): Seq[Path] = {
    val table = new HadoopPath(root.toUri)
    val files = actions.flatMap {
      case f: AddFile => at(root, f.path) ++
        Option(f.deletionVector).filter(_.storageType != DeletionVectorDescriptor.INLINE_DV_MARKER)
          .map(v => Paths.get(v.absolutePath(table).toUri.getPath))
      case f: AddCDCFile => at(root, f.path)
      case _ => None
    }
    files.filter(_.startsWith(root)) :+ root.resolve("_delta_log").resolve(f"$version%020d.json")
  }

  private def at(root: Path, path: String): Option[Path] =
    Option.when(!path.contains(':'))(root.resolve(new HadoopPath(new URI(path)).toString).normalize)

  /** All folders between files and the table's own, with it: the lower ones first. */
  def folders(root: Path, files: Seq[Path]): Seq[Path] =
    files.flatMap(file => Iterator.iterate(file.getParent)(_.getParent).takeWhile(_.startsWith(root)))
      .distinct.sortBy(-_.getNameCount)
}
