/** Owns the record of which home's job writes to an output. */
package org.apache.spark.sql.headgate.commit

import java.nio.file.{Files, NoSuchFileException, Path}

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.JsonNodeFactory

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure}

/** A job in a home.
  *
  * @param id made once for the job in its home; empty if nobody is to be written down
  * @param home where that is, for people
  */
case class Owner(id: String, home: String) {

  /** Whether the output is another's; one that nobody has written down is anyone's. */
  def isOther(found: Option[Owner]): Boolean = id.nonEmpty && found.exists(_.id != id)

  def toJson: String = JsonNodeFactory.instance.objectNode()
    .put("version", 1).put("owner", id).put("home", home).toString
}

object Owner {
  private val mapper = new ObjectMapper()

  def parse(json: Array[Byte]): Owner = {
    val found = mapper.readTree(json)
    Owner(found.path("owner").asText(""), found.path("home").asText(""))
  }
}

/** The owner of a log topic or a folder of files, by job: a file in the folder. */
final class FolderOwner(root: Path, job: String) {
  private val file = root.resolve("_owners").resolve(DiskFiles.fileName(job) + ".json")

  def read(): Option[Owner] =
    try Some(Owner.parse(Files.readAllBytes(file))) catch { case _: NoSuchFileException => None }

  def write(owner: Owner): Unit = DiskFiles.writeAtomically(file, owner.toJson, fsync = true)

  /** Makes the folder this job's; one that is nobody's stays so until it is written. */
  def takeOver(owner: Owner): Unit = if (read().isDefined) write(owner)

  /** Throws if the folder is another's; takes it if it is nobody's. */
  def check(owner: Owner, sink: String): Unit = {
    val found = read()
    if (owner.isOther(found)) throw new OutputTakenException(sink, root.toString, found.get)
    if (found.isEmpty && owner.id.nonEmpty) write(owner)
  }
}

/** Another home's job of the same name writes to the output. */
class OutputTakenException(val coded: Coded) extends RuntimeException(coded.line) with CodedFailure {
  def this(sink: String, output: String, owner: Owner) =
    this(Coded("OUTPUT_TAKEN", "sink" -> sink, "output" -> output, "home" -> owner.home))
}
