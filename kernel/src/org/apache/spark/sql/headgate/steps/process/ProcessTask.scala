package org.apache.spark.sql.headgate.steps.process

import java.util.LinkedHashSet

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.headgate.counters.{NamedCounter, StepCounter}
import org.apache.spark.sql.headgate.failures.{Coded, CodedStateException}
import org.apache.spark.sql.headgate.spark.{GeneratedCode, OpenStores, PythonFailures}
import org.apache.spark.sql.headgate.steps.core.{KeySort, LeastTimes, SortLimits, StepTask, TimeStore}
import org.apache.spark.sql.headgate.store.CachedStore
import org.apache.spark.sql.headgate.testing.TaskFailures
import org.apache.spark.sql.headgate.time.LeastDeadline
import org.apache.spark.sql.types._

case class ProcessCounters(in: StepCounter, out: Seq[StepCounter], inserted: StepCounter,
    removed: StepCounter, named: NamedCounter)

/**
 * All that a task of a process step needs from the driver; times in microseconds.
 *
 * @param order     of the rows of a key
 * @param largeFrom a list or map with more entries is not sent with its key: the worker asks for them
 */
case class ProcessPlan(spec: ProcessSpec, wire: ProcessWire, keys: Seq[Attribute], input: Attribute,
    time: Attribute, rows: Seq[Attribute], columns: Seq[Attribute], watermark: Long, now: Long,
    due: LeastDeadline, clockDue: LeastDeadline, counters: ProcessCounters, batchId: Long, failEvery: Int,
    largeFrom: Long, cacheBytes: Long, order: Seq[Attribute], sort: SortLimits)

/**
 * One partition of one batch. Each key goes to Python once: its state, read here, with its first row;
 * or by itself if only its timers are due. What Python gives back is written as it comes: a key that
 * was sent is never read again in the same batch.
 */
final class ProcessTask(plan: ProcessPlan, opened: OpenStores, input: Iterator[InternalRow],
    partition: Int, worker: ProcessPython, finished: ProcessTask => Unit)
  extends StepTask {
  import ProcessWire._

  private val spec = plan.spec
  private val keyTypes = plan.keys.map(_.dataType)
  private val main = new CachedStore(opened, plan.cacheBytes)
  private val lists = spec.lists.zipWithIndex.map { case (s, i) =>
    new ListStore(s, opened.stores(1 + i), keyTypes, plan.now)
  }.toArray
  private val maps = spec.maps.zipWithIndex.map { case (s, i) =>
    new MapStore(s, opened.stores(1 + lists.length + i), keyTypes, plan.now)
  }.toArray
  private val clocks = ProcessStores.clocks(spec)
  private val firstClock = 1 + lists.length + maps.length
  private val timeStores = clocks.indices.map(i =>
    new TimeStore(opened.stores(firstClock + i), keyTypes, LeastTimes.of(opened, firstClock + i)))
  private def limit(clock: String): Long = if (clock == "event") plan.watermark else plan.now
  /** For each time of the main row, the store of its clock. */
  private val storeOf = spec.clocks.map(c => timeStores(clocks.indexOf(c))).toArray
  private val timerIds = spec.main.drop(spec.firstTime).map(f => TimeStore.id(f.name)).toArray

  // keys that are due and have not come with rows (yet)
  private val due = new LinkedHashSet[UnsafeRow]()
  clocks.zip(timeStores).foreach { case (clock, store) =>
    store.due(limit(clock)) { (key, time, timer) =>
      // a timer that the function has no longer would be due for ever
      val kept = main.get(key)
      val at = timerIds.indexOf(timer)
      val is = kept != null && at >= 0 && !kept.isNullAt(spec.firstTime + at) &&
        kept.getLong(spec.firstTime + at) == time
      if (is) due.add(key.copy())
      is
    }
  }

  private val sorted = new KeySort(plan.columns, plan.keys, plan.order, input, plan.sort)

  /** The rows that Python gets. */
  private lazy val feed: Feed = new Feed {
    private def indexOf(a: Attribute): Int = plan.columns.indexWhere(_.exprId == a.exprId)
    private val inputAt = indexOf(plan.input)
    private val timeAt = indexOf(plan.time)
    private val rowAt = plan.rows.map(indexOf).toArray
    private val rowSize = plan.rows.map(_.dataType.asInstanceOf[StructType].length).toArray
    private val entriesAt = (spec.lists ++ spec.maps).map(spec.entriesAt).toArray
    private val expire = (spec.lists ++ spec.maps).map(_.ttl > 0).toArray
    private val sweepAt = if (spec.clocks.lastOption.contains("expiry")) spec.main.length - 1 else -1
    private val entries: Array[EntryStore] = (lists ++ maps).toArray[EntryStore]
    private val rowsFrom = Before + entries.length
    private val values = new Array[Any](rowsFrom + rowAt.length)
    private val row = new GenericInternalRow(values)
    private val server = if (entries.isEmpty) null else new EntryServer(entries)
    private val headers = Iterator(Watermark -> plan.watermark, Clock -> plan.now) ++
      (if (server == null) Nil else Seq(Port -> server.port.toLong, Secret -> server.secret))
    private var left: java.util.Iterator[UnsafeRow] = null

    override def hasNext: Boolean = headers.hasNext || sorted.hasNext || {
      if (left == null) left = due.iterator()
      left.hasNext
    }

    override def next(): InternalRow = {
      java.util.Arrays.fill(values.asInstanceOf[Array[Object]], null)
      values(Flag) = 0.toByte
      if (headers.hasNext) {
        val (what, number) = headers.next()
        values(Input) = what
        values(Number) = number
      } else if (sorted.hasNext) {
        val in = sorted.next()
        plan.counters.in.inc()
        bytes += in.getSizeInBytes
        val number = in.getByte(inputAt)
        values(Input) = number
        if (!in.isNullAt(timeAt)) values(Number) = in.getLong(timeAt)
        values(rowsFrom + number) = in.getStruct(rowAt(number), rowSize(number))
        if (sorted.isFirst) {
          due.remove(sorted.key)
          state(sorted.key)
        }
      } else {
        values(Input) = Timers
        state(left.next())
      }
      row
    }

    private def state(key: UnsafeRow): Unit = {
      values(Key) = key
      var kept = main.get(key)
      if (kept == null) values(Flag) = First
      else {
        values(Flag) = FirstWithState
        val swept = sweepAt >= 0 && !kept.isNullAt(sweepAt) && kept.getLong(sweepAt) <= plan.now
        var i = 0
        while (i < entries.length) {
          var size = if (kept.isNullAt(entriesAt(i))) 0L else kept.getLong(entriesAt(i))
          if (size > plan.largeFrom && swept && expire(i)) {
            size = entries(i).all(key).length // what is over is removed, and not counted any more
            kept = kept.copy()
            kept.setLong(entriesAt(i), size)
          }
          if (size > plan.largeFrom) { if (values(Large) == null) values(Large) = server.register(key) }
          else if (size > 0) {
            values(Before + i) = entries(i).read(key)
            bytes += entries(i).lastScan
          }
          i += 1
        }
        values(State) = kept
        bytes += kept.getSizeInBytes
      }
    }
  }

  private val python: Iterator[InternalRow] =
    if (sorted.hasNext || !due.isEmpty) worker.run(feed) else Iterator.empty

  private val nameAt = plan.wire.at("name")
  private val numberAt = plan.wire.at("number")
  private val keyAt = plan.wire.at("key")
  private val stateAt = plan.wire.at("state")
  private val oldAt = if (spec.clocks.isEmpty) -1 else plan.wire.at("old")
  private val listAt = lists.indices.map(i => plan.wire.at(s"l$i")).toArray
  private val mapAt = maps.indices.map(i => plan.wire.at(s"m$i")).toArray
  private val outAt = plan.wire.at("o0")
  private val keyRow = GeneratedCode.projection(StructType(keyTypes.zipWithIndex.map { case (t, i) => StructField(s"key$i", t) }))
  private val mainRow = GeneratedCode.projection(spec.main)
  private val outRow = GeneratedCode.projection(
    Seq(BoundReference(0, LongType, nullable = false), BoundReference(1 + numberAt, TimestampType, nullable = true)) ++
      spec.outputs.zipWithIndex.map { case (s, i) => BoundReference(1 + outAt + i, s, nullable = true) })
  private val place = new GenericInternalRow(1)
  private val joined = new JoinedRow

  private def write(row: InternalRow, kind: Int): Unit = {
    val key = keyRow(row.getStruct(keyAt, keyTypes.length))
    val state = row.getStruct(stateAt, spec.main.length)
    if (kind == Delete) { main.remove(key); rowsRemoved += 1; plan.counters.removed.inc() }
    else {
      main.put(key, mainRow(state))
      rowsStored += 1
      if (kind == PutNew) plan.counters.inserted.inc()
    }
    if (oldAt >= 0) {
      val old = row.getStruct(oldAt, storeOf.length)
      var i = 0
      while (i < storeOf.length) {
        val at = spec.firstTime + i
        val was = if (old.isNullAt(i)) None else Some(old.getLong(i))
        val is = if (kind == Delete || state.isNullAt(at)) None else Some(state.getLong(at))
        if (was != is) {
          was.foreach(storeOf(i).remove(key, _, timerIds(i)))
          is.foreach(storeOf(i).put(key, _, timerIds(i)))
        }
        i += 1
      }
    }
    var i = 0
    while (i < lists.length) {
      if (!row.isNullAt(listAt(i))) lists(i).write(key, row.getStruct(listAt(i), 3))
      i += 1
    }
    i = 0
    while (i < maps.length) {
      if (!row.isNullAt(mapAt(i))) maps(i).write(key, row.getStruct(mapAt(i), 3))
      i += 1
    }
  }

  override protected def work(): Unit = {
    val more = try python.hasNext catch {
      // Spark does not say whose worker it was
      case e: Exception if PythonFailures.isWorkerGone(e) =>
        throw new CodedStateException(Coded("PYTHON_WORKER", "step" -> spec.step), e)
    }
    if (more) {
      val row = python.next()
      val kind = row.getByte(0).toInt
      if (kind >= 0) {
        // the order in which a replayed batch gives its rows again
        place.setLong(0, (partition.toLong << 40) | rowsOut)
        rowsOut += 1
        plan.counters.out(kind).inc()
        current = outRow(joined(place, row))
      } else if (kind == Count) plan.counters.named.add((row.getUTF8String(nameAt).toString, row.getLong(numberAt)))
      else write(row, kind)
    } else end()
  }

  private def end(): Unit = {
    ended = true
    clocks.zip(timeStores).foreach { case (clock, store) =>
      val first = store.first
      // what is over is swept with some later batch, but none is run for it
      if (clock == "event") first.foreach(plan.due.add(_))
      else if (clock == "processing") first.foreach(plan.clockDue.add(_))
    }
    finished(this)
    clocks.indices.foreach(i => LeastTimes.keepOnSuccess(opened, firstClock + i, timeStores(i).least))
    main.committed()
    TaskFailures.maybeFail(plan.failEvery, plan.batchId)
  }
}
