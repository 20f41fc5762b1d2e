"""MetricWriter: keeps a job's metrics over time, in a thread of its own.

The driver only hands over what has happened: it never waits for the home here, and what goes wrong
with metrics never ends a job. Another driver's metrics are never touched: before each write the
lease is looked at.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from headgate.base.errors import HeadgateError
from headgate.home.layout import JobHome, RunHome
from headgate.home.metric_files import MetricFiles
from headgate.home.metric_log import MetricLog
from headgate.home.model import CheckpointRecord
from headgate.home.points import Point
from headgate.home.read.batch_points import BatchPoints
from headgate.home.read.series import MARKS
from headgate.home.times import now, to_ms

_LOCAL_SECONDS, _REMOTE_SECONDS = 2.0, 10.0
"""Between two writes; in an object store each is a request."""
_TICK_SECONDS = 0.5
_ASLEEP_SECONDS = 30.0
"""A driver that has not looked for so long was frozen, or its machine slept."""
_CATCH_UP = 350
"""Records that are read at a start at most: as many as are files."""
_MOST_WAITING = 10_000
"""News that are kept while the home cannot be read."""
_LAST_SECONDS = 5.0
"""How long the end of a job waits for the last write."""


@dataclass(frozen=True)
class _Up:
    since: float
    until: float


@dataclass(frozen=True)
class _Mark:
    kind: str
    at: float


_News = RunHome | CheckpointRecord | _Up | _Mark


class MetricWriter:
    """Takes what a driver reports, adds it up, and writes it every few seconds."""

    def __init__(
        self, job: JobHome, *, ours: Callable[[], bool], every: float | None = None
    ) -> None:
        """`ours` looks whether the job is still this driver's; `every` is in seconds."""
        usual = _LOCAL_SECONDS if job.files.local() is not None else _REMOTE_SECONDS
        self._job = job
        self._ours = ours
        self._every = usual if every is None else every
        self._news: queue.SimpleQueue[_News] = queue.SimpleQueue()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._looked: float | None = None

    def begin(self, run: RunHome) -> None:
        """A run is under way; what its last driver could not write comes from its records."""
        self._news.put(run)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="metrics", daemon=True)
            self._thread.start()

    def checkpoint(self, record: CheckpointRecord) -> None:
        """A batch has ended."""
        self._news.put(record)

    def event(self, kind: str, at: datetime) -> None:
        """Something has happened to the run; its query does not run until it is seen again."""
        self._tick(0.0)
        self._looked = None
        if kind in MARKS:
            self._news.put(_Mark(kind, _seconds(at)))

    def running(self) -> None:
        """The query runs; called many times a second."""
        self._tick(_TICK_SECONDS)
        if self._looked is None:
            self._looked = time.time()

    def close(self) -> None:
        """Write what is left."""
        self._tick(0.0)
        self._end.set()
        if self._thread is not None:
            self._thread.join(_LAST_SECONDS)

    def _tick(self, least: float) -> None:
        """Count the time since the query was seen last, if that is enough."""
        if self._looked is None:
            return
        passed = time.time() - self._looked
        if not 0 <= passed <= _ASLEEP_SECONDS:
            self._looked = None
        elif passed >= least:
            self._news.put(_Up(self._looked, self._looked + passed))
            self._looked += passed

    def _work(self) -> None:
        book: _Book | None = None
        waiting: deque[_News] = deque(maxlen=_MOST_WAITING)
        over = False
        while not over:
            over = self._end.wait(self._every)
            with suppress(queue.Empty):
                while True:
                    waiting.append(self._news.get_nowait())
            # a full disk, or a store that is away: tried again
            with suppress(HeadgateError, OSError):
                if self._ours():
                    book = book or _Book(self._job)
                    while waiting:
                        book.take(waiting[0])
                        waiting.popleft()
                    book.write(last=over)


class _Book:
    """The metrics of a job, while this driver writes them."""

    def __init__(self, job: JobHome) -> None:
        self._log = MetricLog(MetricFiles(job.files, job.path))
        self._points: BatchPoints | None = None
        self._crashed = self._log.newest is not None and self._log.newest.open

    def take(self, news: _News) -> None:
        """Add what has happened."""
        if isinstance(news, RunHome):
            self._begin(news)
        elif isinstance(news, CheckpointRecord):
            self._batch(news)
        elif isinstance(news, _Mark):
            self._log.add(news.at, Point(marks={news.kind: 1}))
        else:
            self._up(news)

    def write(self, *, last: bool) -> None:
        """Write it; the last time says that the driver has ended in order."""
        self._log.note(open=not last)
        self._log.flush()

    def _begin(self, run: RunHome) -> None:
        self._points = BatchPoints(run.graph()["steps"])
        missed: list[CheckpointRecord] = []
        for record in run.checkpoint_log.newest_first():
            if len(missed) == _CATCH_UP or self._has(record):
                break
            missed.append(record)
        before = self._log.newest.until if self._log.newest else None
        for record in reversed(missed):
            done = _seconds(record.completed_at or now())
            if before is not None and 0 < done - before <= _ASLEEP_SECONDS:
                self._up(_Up(before, done))
            self._batch(record)
            before = done
        if self._crashed and self._log.newest is not None:
            self._log.add(self._log.newest.until, Point(marks={"crashed": 1}))
        self._crashed = False

    def _up(self, up: _Up) -> None:
        for second, ms in _by_second(up):
            self._log.add(second, Point(up_ms=ms))

    def _batch(self, record: CheckpointRecord) -> None:
        if self._points is None or record.type == "forked" or self._has(record):
            return
        done = record.completed_at or now()
        # a job in a test may have a clock that is ahead
        second = min(_seconds(done), time.time())
        self._log.add(second, self._points.of(record))
        self._log.note(open=True, run=record.run, checkpoint=record.id)

    def _has(self, record: CheckpointRecord) -> bool:
        """Whether a batch is in the metrics already; a forked run begins with one of its parent."""
        last = self._log.newest
        if last is None or last.checkpoint is None:
            return False
        if last.run == record.run:
            return record.id <= last.checkpoint
        return record.type == "forked"


def _by_second(up: _Up) -> Iterable[tuple[float, int]]:
    """The milliseconds of each second in a stretch of time."""
    at = up.since
    while at < up.until:
        then = min(float(int(at) + 1), up.until)
        yield at, round((then - at) * 1000)
        at = then


def _seconds(at: datetime) -> float:
    ms = to_ms(at)
    assert ms is not None
    return ms / 1000
