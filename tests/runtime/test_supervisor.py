"""The supervisor with a query made of Python: records, stops between batches, failures."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from headgate.home.layout import Home, RunHome
from headgate.runtime.records import Recorder
from headgate.runtime.signals import StopRequest
from headgate.runtime.supervisor import Supervisor
from headgate.snapshots.spark_log import pending_batch


class FakeQuery:
    """Batches of some length, one after the other, like Spark's under load."""

    def __init__(self, run: RunHome, *, batches: int | None, seconds: float = 0.05) -> None:
        self.run = run
        self.batches = batches
        self.seconds = seconds
        self.done: list[dict[str, Any]] = []
        self.active = True
        self.in_batch = False
        self.interrupted = False
        self.last_batch = False
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        batch = 0
        while self.active and batch != self.batches:
            self.in_batch = True
            self.run.files.write_text(f"{self.run.spark_path}/offsets/{batch}", "v1\n{}\n{}")
            time.sleep(self.seconds)
            if self.interrupted:
                return
            self.active = not self.last_batch
            time.sleep(self.seconds)  # marked as ended, but not committed yet
            if self.interrupted:
                return
            self.run.files.write_text(f"{self.run.spark_path}/commits/{batch}", "v1\n{}")
            self.done.append(
                {"batchId": batch, "timestamp": f"2026-01-01T12:00:{batch % 60:02d}.000Z",
                 "durationMs": {"addBatch": 1, "triggerExecution": 2}, "sources": []}
            )  # fmt: skip
            self.in_batch = False
            batch += 1
        self.active = False

    @property
    def isActive(self) -> bool:
        return self.active

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": self.in_batch}

    def progress_after(self, batch: int, triggered: str) -> list[dict[str, Any]]:
        return [report for report in self.done if report["batchId"] > batch]

    def exception(self) -> Exception | None:
        return self.error

    def awaitTermination(self, timeout: int | None = None) -> bool:
        self.thread.join(timeout)
        if self.error is not None and not self.thread.is_alive():
            raise self.error
        return not self.thread.is_alive()

    def stop(self) -> None:
        self.interrupted = self.in_batch
        self.active = False
        self.thread.join()


@pytest.fixture
def run(tmp_path: Path) -> RunHome:
    return Home(tmp_path).job("store").run("r1")


def test_a_query_that_ends_by_itself_has_a_record_a_batch(run: RunHome) -> None:
    query = FakeQuery(run, batches=7, seconds=0.02)
    ended = Supervisor(query, Recorder(run, ["a"]), StopRequest()).watch()
    assert (ended.how, ended.error) == ("finished", None)
    assert run.checkpoint_ids() == list(range(7))
    assert {record.type for record in run.checkpoints()} == {"periodic"}


def test_a_failure_is_given_back(run: RunHome) -> None:
    query = FakeQuery(run, batches=1)
    query.error = ValueError("broken")
    ended = Supervisor(query, Recorder(run, ["a"]), StopRequest()).watch()
    assert ended.how == "failed"
    assert ended.error is query.error


def test_a_stop_lets_the_batch_end_even_without_a_pause_between_batches(run: RunHome) -> None:
    def last_batch(query: Any) -> None:
        query.last_batch = True

    query, stop, seen = FakeQuery(run, batches=None, seconds=0.2), StopRequest(), []

    def ask() -> None:
        if seen:
            stop.request("SIGTERM")

    supervisor = Supervisor(
        query,
        Recorder(run, ["a"]),
        stop,
        on_checkpoint=seen.append,
        on_poll=ask,
        stop_after_batch=last_batch,
    )
    ended = supervisor.watch()
    assert (ended.how, ended.error) == ("stopped", None)
    assert not query.interrupted
    assert run.checkpoint_ids() == [p["batchId"] for p in query.done]
    assert pending_batch(run) is None


def test_a_failure_while_stopping_is_a_failure(run: RunHome) -> None:
    query, stop = FakeQuery(run, batches=1, seconds=0.1), StopRequest()
    query.error = ValueError("broken")
    stop.request("SIGTERM")
    ended = Supervisor(query, Recorder(run, ["a"]), stop).watch()
    assert ended.how == "failed"


class Now(StopRequest):
    """A request to stop without waiting for the batch."""

    @property
    def now(self) -> bool:
        return self.requested


def test_a_cancel_does_not_wait_for_the_batch(run: RunHome) -> None:
    query, stop = FakeQuery(run, batches=1, seconds=5), Now()

    def ask() -> None:
        if query.in_batch:
            stop.request("headgate cancel")

    ended = Supervisor(query, Recorder(run, ["a"]), stop, on_poll=ask).watch()
    assert (ended.how, ended.error) == ("cancelled", None)
    assert query.interrupted
    assert run.checkpoint_ids() == []


def test_a_cancel_cuts_a_stop_short(run: RunHome) -> None:
    query, stop, polls = FakeQuery(run, batches=1, seconds=30), Now(), []
    stop.request("SIGTERM")

    class Later:
        """First a stop, then a cancel."""

        def __bool__(self) -> bool:
            return True

        @property
        def now(self) -> bool:
            return len(polls) > 3

    query.thread.join = lambda timeout=None: None  # type: ignore[method-assign]
    query.awaitTermination = lambda timeout=None: query.interrupted  # type: ignore[method-assign]
    ended = Supervisor(
        query, Recorder(run, ["a"]), Later(), on_poll=lambda: polls.append(1)
    ).watch()
    assert ended.how == "cancelled" and query.interrupted


def test_a_drain_reads_to_the_end_although_a_stop_was_asked_for(run: RunHome) -> None:
    query, stop = FakeQuery(run, batches=4, seconds=0.05), StopRequest()
    stop.request("headgate stop")
    ended = Supervisor(query, Recorder(run, ["a"]), stop).drain()
    assert (ended.how, ended.error) == ("stopped", None)
    assert run.checkpoint_ids() == [0, 1, 2, 3]


def test_it_knows_when_the_newest_recorded_trigger_began(run: RunHome) -> None:
    query = FakeQuery(run, batches=3, seconds=0.02)
    supervisor = Supervisor(query, Recorder(run, ["a"]), StopRequest())
    assert supervisor.triggered is None
    supervisor.watch()
    assert supervisor.triggered is not None and supervisor.triggered.second == 2
