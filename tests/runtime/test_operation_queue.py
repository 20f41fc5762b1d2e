"""A driver's queue of operations: what it picks up, what stops the job, what was left over."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import HeadgateError, RefusedError
from headgate.home.files import write_json
from headgate.home.layout import Home, JobHome
from headgate.home.operations import OperationRecord, Operations
from headgate.home.times import now, to_iso
from headgate.runtime.operation_queue import OperationQueue
from headgate.runtime.stopping import StopRequest


class Driver:
    """A queue whose driver is plain Python."""

    def __init__(self, home: Path) -> None:
        self.job: JobHome = Home(home).job("store")
        self.operations = Operations(self.job)
        self.stop = StopRequest()
        self.error: HeadgateError | None = None
        self.checkpoint: int | None = None
        self.queue = OperationQueue(
            self.job, self.stop, token="t1", savepoint=self._savepoint, checkpoint=self._since
        )

    def _savepoint(self, label: str | None) -> Mapping[str, Any]:
        if self.error is not None:
            raise self.error
        return {"label": label or "made"}

    def _since(self, when: datetime) -> Mapping[str, Any] | None:
        return None if self.checkpoint is None else {"run": "r1", "checkpoint": self.checkpoint}

    def ask(self, kind: str, **args: Any) -> str:
        return self.operations.request(kind, args, driver="t1").id

    def poll(self) -> None:
        self.queue._next = 0.0  # its pause is not what is tested
        self.queue.poll()

    def read(self, id: str) -> OperationRecord:
        return self.operations.read(id)


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    return Driver(tmp_path)


def test_a_savepoint_is_made_at_once(driver: Driver) -> None:
    id = driver.ask("savepoint", label="before_v2")
    driver.poll()
    assert (driver.read(id).state, driver.read(id).result) == ("done", {"label": "before_v2"})
    assert not driver.queue


@pytest.mark.parametrize("error", [RefusedError("taken"), FileNotFoundError("gone")], ids=repr)
def test_what_fails_is_told_and_the_job_goes_on(driver: Driver, error: Any) -> None:
    driver.error = error
    id = driver.ask("savepoint")
    driver.poll()
    record = driver.read(id)
    assert record.state == "failed" and str(error) in str(record.message)


def test_a_checkpoint_is_waited_for(driver: Driver) -> None:
    id = driver.ask("checkpoint")
    driver.poll()
    assert driver.read(id).state == "running"
    driver.checkpoint = 18
    driver.poll()
    assert driver.read(id).result == {"run": "r1", "checkpoint": 18}


def test_a_stop_is_a_plan_until_it_is_done(driver: Driver) -> None:
    id = driver.ask("stop", savepoint=True, label="x", drain=True)
    driver.poll()
    plan = driver.queue.stop_plan
    assert plan is not None and plan.savepoint and plan.drain and plan.label == "x"
    assert not driver.queue.now and plan.then is None
    driver.queue.end(plan, result={"checkpoint": 3})
    assert driver.read(id).state == "done" and not driver.queue


def test_a_second_stop_is_told_of_the_first(driver: Driver) -> None:
    driver.ask("stop")
    driver.poll()
    second = driver.ask("restart")
    driver.poll()
    assert "already being stopped" in str(driver.read(second).message)


def test_a_cancel_overtakes_a_stop(driver: Driver) -> None:
    stop = driver.ask("stop")
    driver.poll()
    cancel = driver.ask("cancel")
    driver.poll()
    assert driver.queue.now
    assert driver.read(stop).state == "failed"
    assert f"cancelled by {cancel}" in str(driver.read(stop).message)


def test_a_signal_ends_a_job_that_was_to_be_restarted(driver: Driver) -> None:
    id = driver.ask("restart", parallelism=3)
    driver.poll()
    plan = driver.queue.stop_plan
    assert plan is not None and plan.then is not None and plan.then.parallelism == 3
    driver.stop.request("SIGTERM")
    plan = driver.queue.stop_plan
    assert plan is not None and plan.then is None and plan.reason == "SIGTERM"
    driver.queue.end(plan, result={})
    driver.queue.close("stopped")
    assert driver.read(id).message == "the job stopped before it was done"


def test_a_restart_from_nowhere_does_not_stop_the_job(driver: Driver) -> None:
    id = driver.ask("restart", **{"from": "sp:none"})
    driver.poll()
    assert not driver.queue
    assert "no savepoint 'none'" in str(driver.read(id).message)


def test_a_label_that_is_taken_does_not_stop_the_job(driver: Driver) -> None:
    folder = f"{driver.job.path}/savepoints/before_v2"
    write_json(driver.job.files, f"{folder}/manifest.json", {"version": 1})
    id = driver.ask("stop", label="before_v2")
    driver.poll()
    assert not driver.queue
    assert "already has a savepoint sp:before_v2" in str(driver.read(id).message)


def test_what_a_dead_driver_left_is_settled(driver: Driver) -> None:
    begun = driver.ask("savepoint")
    driver.operations.take(begun)
    stop = driver.operations.request("stop", driver="t0").id
    mine = driver.ask("stop")
    later = driver.operations.request("savepoint", driver="t0").id
    driver.queue.open()
    assert driver.read(begun).state == driver.read(stop).state == "failed"
    assert "ended before it was done" in str(driver.read(begun).message)
    assert driver.read(mine).state == driver.read(later).state == "requested"
    driver.poll()
    assert driver.read(later).state == "done"


def test_old_operations_are_forgotten(driver: Driver) -> None:
    id = driver.ask("savepoint")
    driver.poll()
    record = driver.read(id).to_json()
    driver.queue.open()
    assert driver.operations.ids() == [id]
    record["ended_at"] = to_iso(now() - timedelta(days=31))
    write_json(driver.job.files, f"{driver.job.path}/operations/{id}.json", record)
    driver.queue.open()
    assert driver.operations.ids() == []


def test_who_still_waits_at_the_end_is_told(driver: Driver) -> None:
    checkpoint = driver.ask("checkpoint")
    driver.poll()
    late, kept = driver.ask("cancel"), driver.ask("savepoint")
    driver.queue.close("finished")
    assert driver.read(checkpoint).message == "the job finished before it was done"
    assert "by itself" in str(driver.read(late).message)
    assert driver.read(kept).state == "requested", "the next start does it"


def test_it_does_not_look_all_the_time(driver: Driver) -> None:
    driver.queue.poll()
    id = driver.ask("savepoint")
    driver.queue.poll()
    assert driver.read(id).state == "requested"
    threading.Event().wait(0.6)
    driver.queue.poll()
    assert driver.read(id).state == "done"
