/** Owns the proof that executors see the home that the driver sees. */
package org.apache.spark.sql.headgate.commit

import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.headgate.failures.{Coded, CodedFailure}
import org.apache.spark.sql.headgate.spark.{Session, Sessions}
import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.storage.BlockManagerId
import org.apache.spark.util.SerializableConfiguration

/** An executor has another disk at the home's path. */
class HomeUnseenException(val coded: Coded) extends IOException(coded.line) with CodedFailure

/** What an executor found: `ok`, `unseen` (the driver's file is not there), `apart` (the driver does not
  * find the executor's file) or `unwritable`. */
case class ProbeAnswer(executor: String, host: String, kind: String, text: String) {
  def coded(path: String): Coded = Coded("HOME_UNSEEN",
    "executor" -> executor, "host" -> host, "kind" -> kind, "text" -> text, "path" -> path)
}

/**
 * Executors write state files by themselves. One that has another disk at the home's path loses them,
 * and nothing fails until they are needed. So the driver leaves a file with a number that nobody else
 * knows; a task on each executor reads it and writes one of its own, which the driver reads back.
 *
 * A round waits in a thread of its own until the executors answer: Python polls it. Between rounds a new
 * executor is held up by `guard`, before it touches its first file.
 *
 * @param folder a new folder in the home
 */
final class HomeProbe(session: Session, folder: String, nonce: String) {
  private val context = session.sparkContext
  private val hadoop = Sessions.hadoop(session)
  private val root = new Path(folder)
  private val seen = ConcurrentHashMap.newKeySet[String]()
  @volatile private var problem: String = _
  @volatile private var round: Thread = _
  @volatile private var first = true

  def open(): Unit = {
    HomeProbe.write(new Path(root, HomeProbe.DriverFile), nonce, hadoop)
    session.conf.set(HomeProbe.Key, s"$folder#$nonce")
  }

  /** Whether there is an executor that has not answered yet. */
  def pending(): Boolean = executors.exists(e => !seen.contains(e.executorId))

  def busy(): Boolean = round != null && round.isAlive

  /** What is wrong, as a coded line, or null. */
  def found(): String = problem

  /** Probe all executors that have not answered yet; without one, the first that comes. */
  def start(): Unit = if (!busy()) {
    round = new Thread(() => try ask() catch {
      case NonFatal(_) => // it was cancelled, or the executors were lost: they are probed again
    }, "headgate-home-probe")
    round.setDaemon(true)
    round.start()
  }

  def close(): Unit = {
    context.cancelJobGroup(nonce)
    session.conf.unset(HomeProbe.Key)
    root.getFileSystem(hadoop).delete(root, true)
  }

  private def executors: Seq[BlockManagerId] =
    context.env.blockManager.master.getMemoryStatus.keys.filterNot(_.isDriver).toSeq

  private def ask(): Unit = {
    context.setJobGroup(nonce, "Headgate looks whether the executors see the home")
    if (executors.isEmpty) judge(run(Seq("" -> Nil)))
    var tries = 0
    while (tries < HomeProbe.Tries && pending() && problem == null) {
      judge(run(executors.filter(e => !seen.contains(e.executorId)).map { e =>
        e.executorId -> Seq(s"executor_${e.host}_${e.executorId}") // a place, as TaskLocation reads it
      }))
      tries += 1
    }
    first = false
  }

  private def run(places: Seq[(String, Seq[String])]): Seq[ProbeAnswer] = {
    val (where, number) = (folder, nonce)
    val conf = new SerializableConfiguration(hadoop)
    context.runJob(context.makeRDD(places),
      (_: TaskContext, _: Iterator[String]) => HomeProbe.look(where, number, conf.value)).toSeq
  }

  private def judge(answers: Seq[ProbeAnswer]): Unit = answers.foreach { answer =>
    val file = new Path(root, answer.executor)
    val said = if (answer.kind == "ok") HomeProbe.read(file, nonce, hadoop) else null
    val judged = if (said == null) answer else answer.copy(kind = "apart", text = said)
    if (judged.kind == "ok") seen.add(answer.executor)
    // while the job runs a disk may be full: that is no other disk, and the executor is probed again
    else if (problem == null && (first || judged.kind != "unwritable")) problem = judged.coded(folder).line
    root.getFileSystem(hadoop).delete(file, false)
  }
}

object HomeProbe {
  /** In the session's settings, and so in what executors get with each state store. */
  val Key = "spark.headgate.home.probe"
  private val DriverFile = "driver"
  private val Tries = 3
  // file systems over a network may show a new file a moment later
  private val PatienceMs = 5000L
  private val guarded = ConcurrentHashMap.newKeySet[String]()

  def create(session: ApiSession, folder: String, nonce: String): HomeProbe = {
    val probe = new HomeProbe(Sessions.of(session), folder, nonce)
    probe.open()
    probe
  }

  /** Throws on an executor that does not see the home; looks once in each process. */
  def guard(hadoop: Configuration): Unit = {
    val spec = hadoop.get(Key)
    if (spec != null && !guarded.contains(spec) && !onDriver) {
      val at = spec.lastIndexOf('#')
      val said = read(new Path(spec.take(at), DriverFile), spec.drop(at + 1), hadoop)
      if (said != null) throw new HomeUnseenException(answer("unseen", said).coded(spec.take(at)))
      guarded.add(spec)
    }
  }

  private def onDriver: Boolean = SparkEnv.get == null || SparkEnv.get.executorId == "driver"

  private def answer(kind: String, text: String): ProbeAnswer = {
    val me = SparkEnv.get.blockManager.blockManagerId
    ProbeAnswer(me.executorId, me.host, kind, text)
  }

  private def look(folder: String, nonce: String, hadoop: Configuration): ProbeAnswer = {
    val said = read(new Path(folder, DriverFile), nonce, hadoop)
    if (said != null) answer("unseen", said)
    else try {
      write(new Path(folder, SparkEnv.get.executorId), nonce, hadoop)
      answer("ok", "")
    } catch { case NonFatal(e) => answer("unwritable", e.toString) }
  }

  private def write(file: Path, text: String, hadoop: Configuration): Unit = {
    val out = file.getFileSystem(hadoop).create(file, true)
    try out.write(text.getBytes(UTF_8)) finally out.close()
  }

  /** Null if the file holds the text, else what is there instead. */
  private def read(file: Path, text: String, hadoop: Configuration): String = {
    val until = System.nanoTime() + PatienceMs * 1000000L
    var said = readOnce(file, text, hadoop)
    while (said != null && System.nanoTime() < until) {
      Thread.sleep(200)
      said = readOnce(file, text, hadoop)
    }
    said
  }

  private def readOnce(file: Path, text: String, hadoop: Configuration): String =
    try {
      val in = file.getFileSystem(hadoop).open(file)
      val found = try new String(in.readAllBytes(), UTF_8) finally in.close()
      if (found == text) null else "another file is there"
    } catch {
      case _: FileNotFoundException => "no such file"
      case NonFatal(e) => e.toString
    }
}
