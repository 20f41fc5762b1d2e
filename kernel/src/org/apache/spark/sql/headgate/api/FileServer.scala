/** Owns files of Hadoop's file systems for a Python that has no client of its own for them. */
package org.apache.spark.sql.headgate.api

import java.io.{BufferedReader, FileNotFoundException, IOException, InputStreamReader, PrintStream}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{Base64, UUID}

import scala.collection.mutable
import scala.util.control.NonFatal

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileContext, FileSystem, FileUtil, FSDataOutputStream, Options, Path}

/**
 * Answers one request a line, in JSON, until its input ends: home/hadoop_files.py starts it without Spark
 * and asks. So a command that only looks at a home needs a JVM, and no second way to the store.
 */
object FileServer {
  private val mapper = new ObjectMapper()

  def main(arguments: Array[String]): Unit = {
    val out = System.out
    System.setOut(System.err) // nobody else may write where answers go
    val server = new FileServer(new Path(arguments(0)), new Configuration())
    val in = new BufferedReader(new InputStreamReader(System.in, UTF_8))
    Iterator.continually(in.readLine()).takeWhile(_ != null).foreach(answer(server, _, out))
  }

  private def answer(server: FileServer, line: String, out: PrintStream): Unit = {
    val reply = mapper.createObjectNode()
    try server.serve(mapper.readTree(line), reply)
    catch {
      case _: FileNotFoundException => reply.put("missing", true)
      case NonFatal(e) => reply.put("error", Option(e.getMessage).getOrElse(e.toString).linesIterator.next())
    }
    out.write((mapper.writeValueAsString(reply) + "\n").getBytes(UTF_8))
    out.flush()
  }
}

private final class FileServer(root: Path, hadoop: Configuration) {
  private val fs: FileSystem = root.getFileSystem(hadoop)
  private lazy val context = FileContext.getFileContext(fs.getUri, hadoop)
  private val uploads = mutable.Map[String, FSDataOutputStream]()

  def serve(request: JsonNode, reply: ObjectNode): Unit = {
    val path = at(request.get("path").asText)
    request.get("op").asText match {
      case "exists" => reply.put("value", fs.exists(path))
      case "names" => names(path, reply)
      case "walk" => walk(path, reply)
      case "status" =>
        val found = fs.getFileStatus(path)
        if (found.isDirectory) throw new FileNotFoundException(path.toString)
        reply.put("size", found.getLen).put("modified", found.getModificationTime)
      case "read" => read(path, request.path("offset").asLong, request.path("length").asInt(Int.MaxValue), reply)
      case "write" => write(path, bytes(request))
      case "write_if" =>
        val version = Option(request.get("version")).filter(!_.isNull).map(_.asText)
        reply.put("value", writeIf(path, bytes(request), version))
      case "delete" => fs.delete(path, false)
      case "delete_tree" => fs.delete(path, true)
      case "copy" => FileUtil.copy(fs, at(request.get("source").asText), fs, path, false, true, hadoop)
      case "upload" => upload(path, request)
    }
  }

  private def at(name: String): Path = if (name.isEmpty) root else new Path(root, name)

  private def bytes(request: JsonNode): Array[Byte] = Base64.getDecoder.decode(request.get("data").asText)

  private def names(path: Path, reply: ObjectNode): Unit = {
    val list = reply.putArray("value")
    if (fs.exists(path)) fs.listStatus(path).foreach(found => list.add(found.getPath.getName))
  }

  private def walk(path: Path, reply: ObjectNode): Unit = {
    val list = reply.putArray("value")
    val above = fs.makeQualified(path).toUri.getPath.stripSuffix("/")
    val found = fs.listFiles(path, true)
    while (found.hasNext) list.add(found.next().getPath.toUri.getPath.stripPrefix(above + "/"))
  }

  private def read(path: Path, offset: Long, length: Int, reply: ObjectNode): Unit = {
    val in = fs.open(path)
    try {
      in.seek(offset)
      reply.put("data", Base64.getEncoder.encodeToString(in.readNBytes(length)))
    } finally in.close()
  }

  /** Aside, then renamed in: a reader sees the old file or the new one. */
  private def write(path: Path, data: Array[Byte]): Unit = {
    val aside = beside(path)
    val out = fs.create(aside, true)
    try { out.write(data); out.hsync() } finally out.close()
    context.rename(aside, path, Options.Rename.OVERWRITE)
  }

  private def beside(path: Path): Path = new Path(path.getParent, s".${path.getName}.${UUID.randomUUID}")

  /** A new file appears only if its name is free, by one step of the name node. One that is there is replaced
    * by whoever holds a file beside it, which was made in such a step, too. */
  private def writeIf(path: Path, data: Array[Byte], version: Option[String]): Boolean = version match {
    case None =>
      val aside = beside(path)
      val out = fs.create(aside, true)
      try { out.write(data); out.hsync() } finally out.close()
      try { context.rename(aside, path, Options.Rename.NONE); true }
      catch { case _: FileAlreadyExistsException => fs.delete(aside, false); false }
    case Some(text) => locked(path) {
      val now = { val in = fs.open(path); try new String(in.readAllBytes(), UTF_8) finally in.close() }
      if (now == text) write(path, data)
      now == text
    }
  }

  private def locked(path: Path)(body: => Boolean): Boolean = {
    val lock = new Path(path.getParent, s".${path.getName}.held")
    val until = System.nanoTime() + 60L * 1000000000L
    while (!hold(lock)) {
      if (System.nanoTime() > until) throw new IOException(s"$lock is held by another process")
      Thread.sleep(20)
    }
    try body finally fs.delete(lock, false)
  }

  private def hold(lock: Path): Boolean =
    try { fs.create(lock, false).close(); true }
    catch {
      case _: IOException if fs.exists(lock) =>
        leftByTheDead(lock)
        false
    }

  /** Whoever holds it needs milliseconds. Ages are by the clock of the store. */
  private def leftByTheDead(lock: Path): Unit = try {
    val made = fs.getFileStatus(lock).getModificationTime
    val probe = beside(lock)
    fs.create(probe, true).close()
    val now = fs.getFileStatus(probe).getModificationTime
    fs.delete(probe, false)
    if (now - made > 30000L) fs.delete(lock, false)
  } catch { case _: FileNotFoundException => } // it was given back meanwhile

  private def upload(path: Path, request: JsonNode): Unit = {
    val id = request.get("id").asText
    val out = uploads.getOrElseUpdate(id, fs.create(path, true))
    out.write(bytes(request))
    if (request.get("last").asBoolean) { uploads.remove(id); out.hsync(); out.close() }
  }
}
