/** Owns the driver's side of the write: preparing a batch, committing it sink by sink, the journal. */
package org.apache.spark.sql.headgate.sinks.core

import java.util.UUID

import org.apache.hadoop.fs.Path

import org.apache.spark.sql.connector.write.{PhysicalWriteInfo, WriterCommitMessage}
import org.apache.spark.sql.connector.write.streaming.{StreamingDataWriterFactory, StreamingWrite}
import org.apache.spark.sql.headgate.batch.{BatchGuards, BatchInstant, JobClock, StopAfterBatch}
import org.apache.spark.sql.headgate.commit.{Durability, Fence, HomeFiles, Marker}
import org.apache.spark.sql.headgate.counters.Counters
import org.apache.spark.sql.headgate.spark.{QueryHadoop, RunningBatch, Session, Sessions}
import org.apache.spark.sql.headgate.testing.Failpoints
import org.apache.spark.sql.headgate.time.{Drained, JobTimes}
import org.apache.spark.sql.types.StructType

/** Writes all sinks of a job in one pass.
  *
  * A commit goes sink by sink, each exactly once by its own marker; a crash between two sinks leaves
  * the first out and the second not, and the replay of the batch does the rest. Last comes the
  * batch's journal entry, so a batch with an entry is out in all sinks.
  */
final class SinkWrite(session: Session, spec: JobSpec, schema: StructType, fsync: Boolean)
  extends StreamingWrite {

  private val structs = JobSpec.structs(spec, schema)
  private val outputs = new JobOutputs(spec, fsync)
  private val start = UUID.randomUUID().toString.take(8)

  /** Of this batch: Spark makes the write anew for each. */
  private lazy val mark: Option[Marker] = Marker.ofRunning(session, spec.owner.id)

  /** Before the first task of this process writes: staged files may have the names of old ones. */
  private lazy val recovered: Unit = outputs.all.foreach(_.recover())

  override def createStreamingWriterFactory(info: PhysicalWriteInfo): StreamingDataWriterFactory = {
    recovered
    BatchGuards.checkBeforeTasks(session)
    BatchInstant.announce(session)
    if (outputs.all.exists(_.commitInTasks)) fence().foreach(_.check())
    val batch = new BatchWrite(session, info.numPartitions, mark, structs, spec.outUntil)
    // Those whose tasks commit first: their rows are out first as well.
    val kinds = outputs.kinds.sortBy(!outputs.of(_).commitInTasks)
    SinkTaskFactory(kinds.map(outputs.of(_).prepare(batch)).toArray,
      spec.sinks.map(s => kinds.indexOf(s.kind)).toArray, structs.map(_.length).toArray, start,
      spec.outUntil)
  }

  private def fence(): Option[Fence] = RunningBatch.of(session).flatMap { b =>
    Fence.of(new Path(b.checkpointLocation).getParent, QueryHadoop.of(session))
  }

  override def commit(epochId: Long, messages: Array[WriterCommitMessage]): Unit = {
    BatchGuards.checkBeforeCommit(session)
    val ofTasks = inOrder(messages)
    fence() match {
      case Some(f) => f.section(commitAll(epochId, ofTasks))
      case None => commitAll(epochId, ofTasks)
    }
    RunningBatch.of(session).foreach(b => StopAfterBatch.batchEnds(session, b.runId))
  }

  private def commitAll(epochId: Long, tasks: Seq[TaskMessage]): Unit = {
    Failpoints.reach(spec.run, Failpoints.BeforeSink, epochId)
    var midway = true
    val reachMidway = () =>
      if (midway) {
        midway = false
        Failpoints.reach(spec.run, Failpoints.MidSink, epochId)
      }
    val marked = mark.filter(_.batch == epochId)
      .getOrElse(Marker(epochId, owner = spec.owner.id))
    spec.sinks.foreach { sink =>
      outputs.of(sink.kind).commit(sink, marked, messagesOf(sink, tasks), reachMidway)
    }
    reachMidway()
    writeJournal(epochId)
    Failpoints.reach(spec.run, Failpoints.AfterSink, epochId)
  }

  override def abort(epochId: Long, messages: Array[WriterCommitMessage]): Unit = {
    val tasks = inOrder(messages)
    spec.sinks.foreach { sink =>
      outputs.of(sink.kind).abort(sink, epochId, messagesOf(sink, tasks))
    }
  }

  override def toString: String = s"sinks of ${spec.job}: ${spec.sinks.map(_.name).mkString(", ")}"

  /** Tasks that finished, in the order of their numbers; the others' messages are null. */
  private def inOrder(messages: Array[WriterCommitMessage]): Seq[TaskMessage] =
    messages.toSeq.collect { case t: TaskMessage => t }.sortBy(_.task)

  private def messagesOf(sink: SinkSpec, tasks: Seq[TaskMessage]): Seq[SinkMessage] =
    for (task <- tasks; (number, message) <- task.messages if number == sink.number) yield message

  private def writeJournal(batch: Long): Unit = {
    Drained.batchEnds(session)
    val eventTime = JobTimes.batchEnds(session).fold("")(json => s""","event_time":$json""")
    if (spec.journal.nonEmpty) writeJournal(batch, eventTime)
  }

  private def writeJournal(batch: Long, eventTime: String): Unit = {
    val running = RunningBatch.of(session)
    val counters = running.map(b => Counters.snapshotJson(b.runId, batch)).getOrElse("{}")
    // records were so old when the batch began, and all sinks have their rows so long after it
    val latency = running.fold("") { b =>
      val after = System.currentTimeMillis() + JobClock.offset(session) - b.timeMs
      s""","latency":{"after_ms":$after,"ages":${Counters.agesJson(b.runId, batch)}}"""
    }
    HomeFiles.at(spec.journal).write(
      f"$batch%010d.json",
      s"""{"batch":$batch,"counters":$counters$eventTime$latency}""",
      fsync && Durability.onDisk(Sessions.setting(session, Durability.Key).orNull))
  }
}
