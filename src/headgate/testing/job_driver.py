"""JobDriver: a whole job in a test, on the real kernel, with topics that the test fills."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.api.job import JobDef
from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import NotFoundError, UsageError
from headgate.connectors.log.files import TopicFiles
from headgate.graph.plan import BuiltJob
from headgate.home.layout import Home, RunHome
from headgate.runtime.run import run
from headgate.runtime.session import get_session
from headgate.snapshots.savepoints import create_savepoint
from headgate.snapshots.snapshot import find_snapshot, snapshot_of
from headgate.snapshots.spark_log import latest_committed
from headgate.state import ROWS, StateReader, StateView
from headgate.testing.real_sinks import ReadSink, RealSink
from headgate.testing.records import Record, log_record
from headgate.testing.rows import row_of
from headgate.testing.stand_in import StandInJob

CrashPoint: TypeAlias = Literal[
    "before_sink", "mid_sink", "after_sink", "before_commit", "after_commit"
]
When: TypeAlias = datetime | str
_POINTS = {
    "before_sink": "before_sink",
    "mid_sink": "mid_sink",
    "after_sink": "after_sink",
    "before_commit": "after_sink",
}
_INTERNAL = ("state_", "waiting_")


class JobDriver:
    """Runs the whole job on the real kernel; sources and sinks are topics of the test.

    Use it in a `with` statement, or with the pytest fixture `job_driver`, which closes it.

    The job writes to its real sink if `real_sinks` has a function for the sink that reads all of
    its rows: `JobDriver(job, real_sinks={"visits": read_table})`.

    >>> @hg.job("store")
    ... def store(job: hg.Job) -> None:
    ...     user = hg.topic("log:users", schema="id BIGINT, name STRING")
    ...     order = hg.topic("log:orders", schema="id BIGINT, user_id BIGINT")
    ...     users = job.table("users", user, key="id")
    ...     found = job.source("orders", order).lookup(
    ...         "users_lookup", users, on="user_id", take=["name"], missing=hg.Wait("1 minute"))
    ...     found.sink("enriched", hg.topic("log:enriched"))
    ...     found.missing.sink("unknown", hg.topic("log:unknown"))
    >>> t = job_driver(store)  # or: with JobDriver(store) as t
    >>> _ = t.send("users", {"id": 1, "name": "Ann"}).send("orders", {"id": 7, "user_id": 1})
    >>> t.run().rows("enriched")
    [{'id': 7, 'user_id': 1, 'name': 'Ann'}]

    The examples below continue from here.
    """

    def __init__(
        self,
        job: JobDef,
        *,
        params: Mapping[str, str] | None = None,
        parallelism: int = 2,
        real_sinks: Mapping[str, ReadSink] | None = None,
    ) -> None:
        self._real = {name: RealSink(read) for name, read in (real_sinks or {}).items()}
        self._original = job
        self._params = dict(params or {})
        self._parallelism = parallelism
        self._folder = Path(tempfile.mkdtemp(prefix="headgate-test-"))
        self._job = StandInJob.of(job, self._folder, self._real)
        self._read: dict[str, dict[int, int]] = {}
        self._spark: SparkSession | None = None
        self._built: BuiltJob | None = None
        self._offset_ms = 0
        self._watermarks: dict[str, int] = {}
        self._from: str | None = None
        self._requested: int | None = None
        self._allow_dropped_state = False

    def __enter__(self) -> Self:
        self._spark = get_session(parallelism=self._parallelism)
        self._build()
        for name, real in self._real.items():
            self._sink_schema(name)
            real.fresh()  # what was there before is not the job's
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session.conf.unset(jvm.CLOCK_OFFSET)
        self._session.conf.unset(jvm.WATERMARKS)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _session(self) -> SparkSession:
        if self._spark is None:
            raise UsageError("the driver is not open", remedy="use it in a with statement")
        return self._spark

    @property
    def home(self) -> str:
        """Where the job's runs, checkpoints and savepoints are.

        >>> [path.name for path in Path(t.home, "jobs").iterdir()]
        ['store']
        """
        return str(self._folder / "home")

    @property
    def spark(self) -> SparkSession:
        """The session that the job runs in.

        >>> t.spark.range(3).columns
        ['id']
        """
        return self._session

    @property
    def built(self) -> BuiltJob:
        """The job's graph and operations.

        >>> t.built.graph.sources
        ('users', 'orders')
        """
        assert self._built is not None
        return self._built

    def _build(self) -> None:
        self._built = self._job.build(self._params, spark=self._session)

    def send(self, source: str, *records: Record, partition: int = 0) -> Self:
        """Put records (dicts, dataclasses, or plain text) into a source or table.

        A table's record gets its key from its key columns; `Deleted(key)` is a tombstone.

        >>> _ = t.send("users", {"id": 2, "name": "Bob"}, Deleted(1))
        >>> _ = t.send("orders", {"id": 8, "user_id": 2}, {"id": 9, "user_id": 1})
        """
        if source not in self.built.graph.sources:
            raise NotFoundError(
                f"the job has no source '{source}'",
                expected=", ".join(self.built.graph.sources),
                remedy="send to one of them",
            )
        names = self.built.node(source).operation.record_key
        self._job.source(source).append(
            [log_record(record, names) for record in records], partition=partition
        )
        return self

    def topic(self, source: str) -> TopicFiles:
        """The topic that stands in for a source or table, to write many records at once.

        >>> t.topic("orders").end_offsets()
        {0: 3, 1: 0}
        """
        return self._job.source(source)

    def run(self, *, drain: bool = False) -> Self:
        """Process everything sent so far, then checkpoint; with `drain`, close all windows.

        >>> t.run().rows("enriched")
        [{'id': 8, 'user_id': 2, 'name': 'Bob'}]
        """
        outcome = self._run(drain=drain)
        if outcome.error is not None:
            raise outcome.error
        return self

    def _run(self, *, drain: bool = False) -> Any:
        restore, self._from = self._from, None
        requested, self._requested = self._requested, None
        return run(
            self._job,
            home=self.home,
            params=self._params,
            bounded=True,
            drain=drain,
            restore=restore,
            allow_dropped_state=self._allow_dropped_state,
            parallelism=requested or (None if self._current() else self._parallelism),
            spark=self._session,
            take_over=True,  # stand-ins are the driver's alone, also when a test moves its home
        )

    def _current(self) -> RunHome | None:
        home = Home(self.home).job(self._job.name)
        return home.current() if home.exists() else None

    @property
    def _run_home(self) -> RunHome:
        current = self._current()
        if current is None:
            raise UsageError("the job has not run yet", remedy="call run() first")
        return current

    def rows(self, sink: str) -> list[dict[str, Any]]:
        """The committed rows of a sink since the last call, in no particular order.

        >>> t.rows("enriched"), t.rows("unknown")
        ([], [])
        """
        schema = self._sink_schema(sink)
        if sink in self._real:
            return self._real[sink].fresh()
        topic = self._job.sink(sink)
        if not topic.exists():
            return []
        start = self._read.get(sink)
        ends = topic.end_offsets()
        found = [row_of(r.value, schema) for r in topic.read(start)]
        self._read[sink] = ends
        return found

    def changes(self, sink: str) -> list[tuple[str | None, dict[str, Any] | None]]:
        """The committed changes of a sink since the last call: key, and row or None for a deletion.

        The changes of a key are in order. `rows` and `changes` share one position in the output.

        >>> t.changes("enriched")
        []
        """
        schema, topic = self._sink_schema(sink), self._job.sink(sink)
        if not topic.exists():
            return []
        start, ends = self._read.get(sink), topic.end_offsets()
        records = list(topic.read(start))
        self._read[sink] = ends
        return [(r.key, None if r.value is None else row_of(r.value, schema)) for r in records]

    def _sink_schema(self, sink: str) -> StructType:
        for node in self.built.nodes:
            if node.step.id == sink and node.step.role == "sink":
                (edge,) = node.step.inputs
                return self.built.node(edge.step).schemas[edge.output]
        raise NotFoundError(
            f"the job has no sink '{sink}'",
            expected=", ".join(n.step.id for n in self.built.nodes if n.step.role == "sink"),
            remedy="name one of them",
        )

    def state(self, step: str, name: str = ROWS) -> StateView:
        """The rows in a step's state after the last checkpoint, or in the restored snapshot.

        >>> t.state("users_lookup").all()
        [{'key': {'id': 2}, 'row': {'name': 'Bob'}}]
        """
        if self._from is not None:
            chosen = find_snapshot(Home(self.home), self._from, self._job.name)
            return StateReader(self._session, chosen).view(step, name)
        batch = latest_committed(self._run_home)
        if batch is None:
            raise UsageError("the job has no checkpoint yet", remedy="call run() first")
        return StateReader(self._session, snapshot_of(self._run_home, batch)).view(step, name)

    def metrics(self, step: str) -> dict[str, int]:
        """The counters of a step since the job's first run, and how many rows wait in it.

        >>> t.metrics("users_lookup")["records_waiting"]
        1
        """
        record = self._run_home.latest_checkpoint()
        counts = dict(record.totals.get(step, {})) if record else {}
        shown = {name: n for name, n in counts.items() if not name.startswith(_INTERNAL)}
        if "waiting_added" in counts:
            shown["records_waiting"] = counts["waiting_added"] - counts["waiting_removed"]
        return shown

    def checkpoint(self) -> str:
        """The name of the last checkpoint.

        >>> t.checkpoint()
        'r1/ck:1'
        """
        record = self._run_home.latest_checkpoint()
        return f"{self._run_home.id}/ck:{record.id}" if record else f"{self._run_home.id}/none"

    def advance_processing_time(self, by: Duration) -> Self:
        """Move processing time forward, for waiting rows, timers and sources that become idle.

        >>> t.advance_processing_time("1 minute").run().rows("unknown")
        [{'id': 9, 'user_id': 1}]
        """
        self._offset_ms += int(parse_duration(by).total_seconds() * 1000)
        self._session.conf.set(jvm.CLOCK_OFFSET, str(self._offset_ms))
        return self

    def advance_watermark(self, source: str, to: When) -> Self:
        """Move a source's watermark forward without rows, from the next run on.

        The job's watermark is the lowest of its sources' watermarks. `to` is a datetime or ISO
        8601, in UTC unless it says otherwise. The watermark stays there after a crash or restore;
        moving it back has no effect.

        >>> @hg.job("visits")
        ... def visits(job: hg.Job) -> None:
        ...     visit = hg.topic("log:visits", schema="at TIMESTAMP")
        ...     rows = job.source("visits", visit, event_time=hg.event_time("at")).key_by()
        ...     hourly = rows.window("hourly", hg.tumbling("1 hour"), F.count("*").alias("n"))
        ...     hourly.select("n", "fired_by").sink("out", hg.topic("log:out"))
        >>> windows = job_driver(visits).send("visits", {"at": "2026-01-01T12:10:00Z"})
        >>> windows.advance_watermark("visits", "2026-01-01T13:00:00").run().rows("out")
        [{'n': 1, 'fired_by': 'on_time'}]
        """
        times = [
            node.step.id for node in self.built.nodes if node.operation.event_time() is not None
        ]
        if source not in times:
            raise NotFoundError(
                f"the job has no source '{source}' with event time",
                expected=", ".join(times) or "none of its sources has",
                remedy="name one of them",
            )
        try:
            when = datetime.fromisoformat(to) if isinstance(to, str) else to
        except ValueError as error:
            raise UsageError(
                "the time must be a datetime or ISO text",
                got=repr(to),
                remedy='write it as "2026-01-01T12:00:00"',
            ) from error
        when = when if when.tzinfo else when.replace(tzinfo=UTC)
        self._watermarks[source] = int(when.timestamp() * 1000)
        self._session.conf.set(jvm.WATERMARKS, json.dumps(self._watermarks))
        return self

    def crash(self, at: CrashPoint = "after_sink") -> Self:
        """Process what was sent, but die at a certain point of the batch's commit.

        At `mid_sink`, the first sink with rows has written them but has not recorded that yet.

        >>> _ = t.send("orders", {"id": 10, "user_id": 2}).crash(at="after_sink")
        >>> t.restore().run().rows("enriched")
        [{'id': 10, 'user_id': 2, 'name': 'Bob'}]
        """
        if at == "after_commit":
            self.run()
            return self
        runs = self._next_runs()
        for name in runs:
            jvm.arm_crash(self._session, name, _POINTS[at])
        try:
            outcome = self._run()
        finally:
            for name in runs:
                jvm.disarm_crash(self._session, name)
        if outcome.error is None:
            raise UsageError(
                "there was nothing to process, so nothing crashed", remedy="send records first"
            )
        return self

    def _next_runs(self) -> list[str]:
        """The run that may go on, and the one that a restore, rescale or change would begin."""
        home = Home(self.home).job(self._job.name)
        current = self._current()
        new = f"r{len(home.runs()) + 1 if home.exists() else 1}"
        return [new] if current is None else [current.id, new]

    def savepoint(self, label: str | None = None) -> str:
        """Make a savepoint of the last checkpoint; returns its name for `restore`.

        >>> t.savepoint("before_v2")
        'sp:before_v2'
        """
        return f"sp:{create_savepoint(self._run_home, label=label).label}"

    def restore(
        self,
        snapshot: str | None = None,
        *,
        job: JobDef | None = None,
        parallelism: int | None = None,
        allow_dropped_state: bool = False,
    ) -> Self:
        """Continue from the last checkpoint or a snapshot: after a crash, or with a changed job.

        >>> len(t.restore("sp:before_v2").state("users_lookup").all())
        1
        """
        if job is not None:
            self._original = job
            self._job = StandInJob.of(job, self._folder, self._real)
            self._build()
        self._from = snapshot
        self._allow_dropped_state = allow_dropped_state
        if parallelism is not None:
            self._parallelism = parallelism
            self._requested = parallelism
        return self
