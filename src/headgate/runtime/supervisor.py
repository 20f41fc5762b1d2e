"""The supervisor of one running query: polls it, writes its records, stops it between batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from headgate.base.coded import CodedFailure
from headgate.base.durations import format_duration
from headgate.home.model import CheckpointRecord
from headgate.home.times import from_iso
from headgate.runtime.records import Recorder

_POLL_SECONDS = 0.1
_STOP_POLL_SECONDS = 0.02
_IDLE_SECONDS = 2.0
_END_POLL_SECONDS = 1


class Query(Protocol):
    """The part of a job's query that the supervisor uses."""

    @property
    def isActive(self) -> bool:
        """Whether it has not ended."""

    @property
    def status(self) -> Mapping[str, Any]:
        """Whether a trigger is at work (isTriggerActive)."""

    def progress_after(self, batch: int, triggered: str) -> Sequence[Mapping[str, Any]]:
        """What it reported after the trigger of that number and time, oldest first."""

    def exception(self) -> Exception | None:
        """Why it ended, if it failed."""

    def awaitTermination(self, timeout: float | None = None) -> bool | None:
        """Wait for its end, at most so many seconds; raises if it failed."""

    def stop(self) -> None:
        """Interrupt it, wherever it is."""


class StopSignal(Protocol):
    """True once the query is to be stopped."""

    def __bool__(self) -> bool:
        """Whether a stop was requested."""

    @property
    def now(self) -> bool:
        """Whether it shall not wait for the end of the batch."""


@dataclass(frozen=True)
class Ended:
    """How a query ended, and with which error if it failed."""

    how: str
    """finished (by itself, all input read), stopped (after a batch), cancelled (within one) or
    failed."""
    error: Exception | None = None


class BatchTimeoutError(CodedFailure):
    """A batch took longer than the job allows."""

    def __init__(self, after: timedelta) -> None:
        super().__init__("BATCH_TIMEOUT", {"after": format_duration(after)})


class Supervisor:
    """Watches a query from its start to its end, in the thread that calls ``watch``."""

    def __init__(
        self,
        query: Query,
        recorder: Recorder,
        stop: StopSignal,
        *,
        on_checkpoint: Callable[[CheckpointRecord], None] = lambda record: None,
        on_poll: Callable[[], None] = lambda: None,
        stop_after_batch: Callable[[Any], None] = lambda query: None,
        batch_limit: timedelta | None = None,
    ) -> None:
        self._query = query
        self._recorder = recorder
        self._stop = stop
        self._on_checkpoint = on_checkpoint
        self._on_poll = on_poll
        self._stop_after_batch = stop_after_batch
        self._batch_limit = batch_limit
        self._batch_began: float | None = None
        self._seen: tuple[int, str] = (-1, "")
        self.triggered: datetime | None = None
        """When the newest trigger began whose checkpoint, if it made one, has its record."""

    def watch(self) -> Ended:
        """Block until the query has ended or a requested stop is done."""
        while self._query.isActive:
            if self._stop:
                return self._finish()
            self._record()
            self._on_poll()
            if (late := self._late()) is not None:
                self.stop_now()
                return Ended("failed", BatchTimeoutError(late))
            self._rest()
        self._record()
        error = self._query.exception()
        return Ended("failed", error) if error is not None else Ended("finished")

    def _late(self) -> timedelta | None:
        """How long the running batch takes already, if that is longer than it may."""
        if self._batch_limit is None:
            return None
        if not self._query.status["isTriggerActive"]:
            self._batch_began = None
        elif self._batch_began is None:
            self._batch_began = time.monotonic()
        if self._batch_began is None:
            return None
        took = timedelta(seconds=time.monotonic() - self._batch_began)
        return took if took > self._batch_limit else None

    def _rest(self) -> None:
        """Wait a little, not longer than the query lives."""
        with suppress(Exception):  # the error is read when the query has ended
            self._query.awaitTermination(_POLL_SECONDS)

    def drain(self) -> Ended:
        """Let a query that ends by itself read what is there, although a stop was requested."""
        while self._query.isActive and not self._stop.now:
            self._record()
            self._on_poll()
            self._rest()
        return self._cancel() if self._query.isActive else self._ended()

    def finish_one(self) -> Ended:
        """Wait for one batch of a query that has just been started, and no more."""
        self._stop_after_batch(self._query)
        return self._ended()

    def stop_now(self) -> None:
        """Stop in the middle of a batch: the next start runs the batch again."""
        self._query.stop()

    def _finish(self) -> Ended:
        """Let the running batch end, with no other after it, and write its record."""
        # The kernel ends the query at the end of the batch or while it waits for its next
        # trigger; under load there is no pause between two triggers in which to stop it.
        self._stop_after_batch(self._query)
        idle = 0.0
        while self._query.isActive and idle < _IDLE_SECONDS and not self._stop.now:
            self._record()
            self._on_poll()
            time.sleep(_STOP_POLL_SECONDS)
            idle = 0.0 if self._query.status["isTriggerActive"] else idle + _STOP_POLL_SECONDS
        if self._query.isActive and self._stop.now:
            return self._cancel()
        if self._query.isActive:
            self._query.stop()
        # No stop() otherwise: a query that the kernel has ended is still writing its commit.
        return self._ended()

    def _cancel(self) -> Ended:
        self.stop_now()
        ended = self._ended()
        # What an interrupted batch says about its end is not a failure of the job.
        return ended if ended.error is None else Ended("cancelled")

    def _ended(self) -> Ended:
        error = self._await_end()
        self._record()
        for record in self._recorder.recover():
            self._on_checkpoint(record)
        if error is not None:
            return Ended("failed", error)
        return Ended("cancelled" if self._stop.now else "stopped")

    def _await_end(self) -> Exception | None:
        while True:
            try:
                if self._query.awaitTermination(_END_POLL_SECONDS):
                    return None
            except Exception as error:
                return self._query.exception() or error
            self._on_poll()
            if self._stop.now:
                self.stop_now()

    def _record(self) -> None:
        news = self._query.progress_after(*self._seen)
        if not news:
            return
        self._batch_began = None
        for record in self._recorder.observe(news):
            self._on_checkpoint(record)
        # The time too: an idle trigger reports progress under the number of the next batch.
        self._seen = (int(news[-1]["batchId"]), str(news[-1]["timestamp"]))
        self.triggered = from_iso(self._seen[1])
