/** Owns the driver's side of the write: preparing a batch, committing it sink by sink, the journal. */
package org.apache.spark.sql.headgate.sinks.core

import java.nio.file.Files
import java.util.UUID

import org.apache.hadoop.fs.Path
import org.apache.hadoop.mapreduce.Job

import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.connector.write.{PhysicalWriteInfo, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.execution.datasources.{FileFormat, OutputWriterFactory}
import org.apache.spark.sql.execution.datasources.csv.CSVFileFormat
import org.apache.spark.sql.execution.datasources.json.JsonFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.headgate.batch.{BatchGuards, StopAfterBatch}
import org.apache.spark.sql.headgate.commit.{DiskSync, Durability, Fence, Marker}
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.sinks.console.ConsoleWriter
import org.apache.spark.sql.headgate.sinks.files.FilesCommit
import org.apache.spark.sql.headgate.sinks.kafka.KafkaDriver
import org.apache.spark.sql.headgate.sinks.log.LogCommit
import org.apache.spark.sql.headgate.sinks.pulsar.PulsarDriver
import org.apache.spark.sql.headgate.sources.log.Topic
import org.apache.spark.sql.headgate.spark.RunningBatch
import org.apache.spark.sql.headgate.testing.Failpoints
import org.apache.spark.sql.headgate.time.{Drained, JobTimes}
import org.apache.spark.sql.types.StructType
import org.apache.spark.util.SerializableConfiguration

/** Writes all sinks of a job in one pass.
  *
  * A commit goes sink by sink, each exactly once by its own marker; a crash between two sinks leaves
  * the first out and the second not, and the replay of the batch does the rest. Last comes the
  * batch's journal entry, so a batch with an entry is out in all sinks.
  */
final class SinkWrite(session: SparkSession, spec: JobSpec, schema: StructType, fsync: Boolean)
  extends StreamingWrite {

  private val structs = JobSpec.structs(spec, schema)
  private val sinks = spec.sinks.toArray
  private val start = UUID.randomUUID().toString.take(8)

  /** Of this batch: Spark makes the write anew for each. */
  private lazy val mark: Option[Marker] = Marker.ofRunning(session, spec.owner.id)

  /** Before the first task of this process writes: staged files may have the names of old ones. */
  private lazy val recovered: Unit =
    sinks.filter(_.kind == "log").foreach(logCommit(_).recover())

  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = {
    recovered
    BatchGuards.check(session)
    // Their tasks commit by themselves: a driver that lost its lease must not start any.
    if (has("kafka") || has("pulsar")) fence().foreach(_.check())
    // Only those that there are: the classes of the others' clients may be missing.
    val byTask = Array.newBuilder[ByTaskPlan]
    if (has("kafka")) byTask += KafkaDriver.plan(session, spec, info.numPartitions, mark)
    if (has("pulsar")) byTask += PulsarDriver.plan(session, spec, info.numPartitions)
    SinkTaskFactory(sinks.zip(structs).map { case (s, struct) => plan(s, struct) }, byTask.result(),
      start, session.sessionState.conf.sessionLocalTimeZone, fsync, spec.outUntil)
  }

  private def has(kind: String): Boolean = sinks.exists(_.kind == kind)

  private def fence(): Option[Fence] = RunningBatch.current(session).flatMap { b =>
    Fence.of(new Path(b.checkpointLocation).getParent, session.sessionState.newHadoopConf())
  }

  private def plan(sink: SinkSpec, struct: StructType): SinkPlan = {
    val writerId = spec.writerId(sink)
    sink.kind match {
      case "log" =>
        val topic = Topic.at(sink.path)
        topic.createIfMissing(sink.partitions)
        Files.createDirectories(topic.staging)
        val commit = logCommit(sink)
        commit.owner.check(spec.owner, sink.name)
        SinkPlan(sink, writerId, struct, topic.staging.toString,
          outBy(commit.marker, sink), topic.partitions, null, null)
      case "files" =>
        val commit = filesCommit(sink)
        DiskSync.createFolders(commit.staging)
        commit.owner.check(spec.owner, sink.name)
        val (factory, hadoop) = outputWriter(sink, struct)
        SinkPlan(sink, writerId, struct, commit.staging.toString, outBy(commit.marker, sink), 0,
          factory, hadoop)
      case _ => SinkPlan(sink, writerId, struct, "", -1L, 0, null, null)
    }
  }

  /** The last batch that is out; throws if the sink has this batch's number for other rows. */
  private def outBy(marker: Option[Marker], sink: SinkSpec): Long = {
    for (found <- marker; running <- mark if running.batch > spec.outUntil) {
      found.holds(running, sink.name)
    }
    marker.fold(-1L)(_.batch)
  }

  private def outputWriter(
      sink: SinkSpec, struct: StructType): (OutputWriterFactory, SerializableConfiguration) = {
    val format: FileFormat = sink.format match {
      case "parquet" => new ParquetFileFormat()
      case "json" => new JsonFileFormat()
      case "csv" => new CSVFileFormat()
      case other =>
        throw new IllegalArgumentException(
          s"sink '${sink.name}': format parquet, json or csv, not '$other'")
    }
    val job = Job.getInstance(session.sessionState.newHadoopConfWithOptions(sink.options))
    val factory = format.prepareWrite(session, job, sink.options, struct)
    (factory, new SerializableConfiguration(job.getConfiguration))
  }

  override def commit(epochId: Long, messages: Array[WriterCommitMessage]): Unit = {
    BatchGuards.check(session)
    fence() match {
      case Some(f) => f.section(commitAll(epochId, filesOf(messages)))
      case None => commitAll(epochId, filesOf(messages))
    }
    RunningBatch.current(session).foreach(b => StopAfterBatch.batchEnds(session, b.runId))
  }

  private def commitAll(epochId: Long, tasks: Seq[TaskFiles]): Unit = {
    Failpoints.reach(spec.run, Failpoints.BeforeSink, epochId)
    var midway = true
    val reachMidway = () =>
      if (midway) {
        midway = false
        Failpoints.reach(spec.run, Failpoints.MidSink, epochId)
      }
    val marked = mark.filter(_.batch == epochId)
      .getOrElse(Marker(epochId, owner = spec.owner.id))
    sinks.indices.foreach { s =>
      val staged = tasks.flatMap(_.staged).filter(_.sink == s)
      sinks(s).kind match {
        case "log" => logCommit(sinks(s)).commit(marked, staged, reachMidway)
        case "files" =>
          filesCommit(sinks(s)).commit(marked, staged)
          if (staged.nonEmpty) reachMidway()
        case "kafka" | "pulsar" => // is out: its tasks have committed
        case _ => show(sinks(s), epochId, tasks.flatMap(_.shown).filter(_.sink == s))
      }
    }
    reachMidway()
    writeJournal(epochId)
    Failpoints.reach(spec.run, Failpoints.AfterSink, epochId)
  }

  override def abort(epochId: Long, messages: Array[WriterCommitMessage]): Unit = {
    val staged = filesOf(messages).flatMap(_.staged)
    sinks.indices.foreach { s =>
      val ofSink = staged.filter(_.sink == s)
      sinks(s).kind match {
        case "log" => logCommit(sinks(s)).abort(epochId, ofSink)
        case "files" => filesCommit(sinks(s)).abort(epochId, ofSink)
        case _ =>
      }
    }
  }

  override def toString: String = s"sinks of ${spec.job}: ${sinks.map(_.name).mkString(", ")}"

  /** Tasks that finished, in the order of their numbers; the others' messages are null. */
  private def filesOf(messages: Array[WriterCommitMessage]): Seq[TaskFiles] =
    messages.toSeq.collect { case t: TaskFiles => t }.sortBy(_.task)

  private def logCommit(sink: SinkSpec): LogCommit =
    new LogCommit(Topic.at(sink.path), spec, sink, fsync)

  private def filesCommit(sink: SinkSpec): FilesCommit = new FilesCommit(spec, sink, fsync)

  private def show(sink: SinkSpec, batch: Long, shown: Seq[Shown]): Unit = if (shown.nonEmpty) {
    val rows = shown.map(_.rows).sum
    val lines = shown.flatMap(_.lines).take(ConsoleWriter.Rows)
    val more = if (rows > lines.length) s", the first ${lines.length}" else ""
    val head = s"-- ${sink.name}, batch $batch: $rows ${if (rows == 1) "row" else "rows"}$more"
    System.out.println((head +: lines).mkString(System.lineSeparator))
    System.out.flush()
  }

  private def writeJournal(batch: Long): Unit = {
    Drained.batchEnds(session)
    val eventTime = JobTimes.batchEnds(session).fold("")(json => s""","event_time":$json""")
    if (spec.journal.nonEmpty) writeJournal(batch, eventTime)
  }

  private def writeJournal(batch: Long, eventTime: String): Unit = {
    val counters = RunningBatch.current(session)
      .map(running => Counters.snapshotJson(running.runId, batch)).getOrElse("{}")
    Topic.writeAtomically(
      Topic.localPath(spec.journal).resolve(f"$batch%010d.json"),
      s"""{"batch":$batch,"counters":$counters$eventTime}""",
      fsync && Durability.onDisk(session.sessionState.conf.getConfString(Durability.Key, "")))
  }
}
