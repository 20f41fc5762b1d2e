/** Owns where a batch's time goes: its stages, the steps in each, and how even their tasks were. */
package org.apache.spark.sql.headgate.counters

import java.util.{Collections, UUID, WeakHashMap}

import scala.collection.mutable

import org.json4s._
import org.json4s.jackson.JsonMethods

import org.apache.spark.{SparkContext, Success}
import org.apache.spark.scheduler._
import org.apache.spark.sql.headgate.spark.RunningBatch

/**
 * Hears of tasks from Spark's listener bus, on a thread of its own, after they have ended: no task and
 * no commit waits for it. So it may know less than all when it is asked, and a task that ran twice may
 * be in it twice; nothing but what people look at is made of it.
 *
 * The steps of a stage are those whose [[StepCounter]]s its tasks have moved.
 */
final class StageTimes private extends SparkListener {
  import StageTimes._

  override def onStageSubmitted(event: SparkListenerStageSubmitted): Unit =
    for ((run, batch) <- RunningBatch.ofProperties(event.properties) if Counters.knows(run)) {
      StageTimes.synchronized {
        val batches = runs.getOrElseUpdate(run, mutable.TreeMap.empty)
        val stage = new Stage(event.stageInfo.submissionTime.getOrElse(System.currentTimeMillis()))
        batches.getOrElseUpdate(batch, mutable.ArrayBuffer.empty) += stage
        while (batches.size > KeptBatches) batches -= batches.firstKey
        running(event.stageInfo.stageId) = stage
      }
    }

  override def onTaskEnd(event: SparkListenerTaskEnd): Unit =
    if (event.reason == Success && event.taskMetrics != null) StageTimes.synchronized {
      running.get(event.stageId).foreach(_.ended(event.taskInfo, event.taskMetrics.executorRunTime))
    }

  override def onStageCompleted(event: SparkListenerStageCompleted): Unit = StageTimes.synchronized {
    running.remove(event.stageInfo.stageId).foreach { stage =>
      stage.completedMs = event.stageInfo.completionTime.getOrElse(System.currentTimeMillis())
    }
  }

  override def onApplicationEnd(end: SparkListenerApplicationEnd): Unit =
    StageTimes.synchronized(running.clear())
}

object StageTimes {
  private val KeptBatches = 3
  private val Prefix = "headgate "
  private val In = "records_in"
  private val Out = "records_out"
  private val listening = Collections.newSetFromMap(new WeakHashMap[SparkContext, java.lang.Boolean])
  private val running = mutable.Map.empty[Int, Stage]
  private val runs = mutable.Map.empty[UUID, mutable.TreeMap[Long, mutable.ArrayBuffer[Stage]]]

  /** Rows of a step over its tasks: their sum, the most of one task, and the sum of squares. */
  private final class Spread {
    private var sum, most = 0L
    private var squares = 0.0
    def add(rows: Long): Unit = {
      sum += rows; most = math.max(most, rows); squares += rows.toDouble * rows
    }
    def json: JObject =
      JObject("sum" -> JLong(sum), "most" -> JLong(most), "squares" -> JDouble(squares))
  }

  private final class Stage(val submittedMs: Long) {
    var completedMs = 0L
    private var tasks, runMs, longestMs = 0L
    private val rows = mutable.TreeMap.empty[(String, String), Spread]

    def ended(task: TaskInfo, ms: Long): Unit = {
      tasks += 1; runMs += ms; longestMs = math.max(longestMs, ms)
      for (one <- task.accumulables; name <- one.name if name.startsWith(Prefix); update <- one.update) {
        val split = name.lastIndexOf(' ')
        val key = (name.substring(Prefix.length, math.max(split, Prefix.length)), name.substring(split + 1))
        update match {
          case n: Long => rows.getOrElseUpdate(key, new Spread).add(n)
          case _ => rows.getOrElseUpdate(key, new Spread)  // a step that counts under names of its own
        }
      }
    }

    def json: JObject = {
      val steps = rows.groupBy(_._1._1).toList.sortBy(_._1).map { case (step, of) =>
        step -> of.get((step, In)).orElse(of.get((step, Out))).fold(JObject())(_.json)
      }
      JObject("submitted_ms" -> JLong(submittedMs), "completed_ms" -> JLong(completedMs),
        "tasks" -> JLong(tasks), "run_ms" -> JLong(runMs), "longest_ms" -> JLong(longestMs),
        "steps" -> JObject(steps))
    }
  }

  /** From now on hears of the tasks of this context; asked again, it does nothing. */
  def listenTo(context: SparkContext): Unit = synchronized {
    if (listening.add(context)) context.addSparkListener(new StageTimes)
  }

  /** The stages of a batch that have ended, as a JSON array in the order in which they began. */
  def json(run: UUID, batch: Long): String = synchronized {
    val ended = runs.get(run).flatMap(_.get(batch)).fold(List.empty[Stage])(_.toList).filter(_.completedMs > 0)
    JsonMethods.compact(JsonMethods.render(JArray(ended.map(_.json))))
  }

  /** Called when a query ended, so that a long-lived session does not collect them. */
  def forget(run: UUID): Unit = synchronized(runs -= run)
}
