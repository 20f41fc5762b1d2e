"""A home whose disk is full or read-only: the job waits, says why, and goes on exactly."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import JobFailedError
from headgate.cli.app import load_app
from headgate.home.layout import Home
from headgate.home.status_note import read_note
from headgate.runtime.run import run
from headgate.runtime.status import job_status
from tests.reliability.processes import Driver
from tests.reliability.small_disk import SmallDisk, needs_mounts, small_disk
from tests.reliability.store_data import Producer
from tests.reliability.store_truth import written
from tests.reliability.test_driver_kills import STORE, assert_truth, checkpoints
from tests.reliability.topics import INPUTS, OUTPUTS, topics_of

ORDERS = 6_000
PATIENT = 'hg.exponential_delay(initial="500 milliseconds", maximum="2 seconds")'


def store_with(folder: Path, restart: str) -> Path:
    """The store job with another restart strategy, and small batches."""
    text = STORE.read_text()
    text = text.replace('hg.fixed_delay(attempts=5, delay="10 seconds")', restart)
    text = text.replace('every="5 seconds"', 'every="500 milliseconds"')
    assert restart in text
    path = folder / "store_on_a_small_disk.py"
    path.write_text(text)
    return path


def shown(home: Path, *more: str) -> str:
    """What `headgate show` says of the job."""
    return subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "show", "store", "--home", str(home), *more],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout  # fmt: skip


def until(met: Callable[[], object], driver: Driver, seconds: float = 90) -> None:
    """Wait for something while the driver lives."""
    end = time.monotonic() + seconds
    while not met():
        assert driver.process.poll() is None, driver.text()[-3000:]
        assert time.monotonic() < end, driver.text()[-3000:]
        time.sleep(0.1)


def waits(home: Path, driver: Driver, word: str) -> dict[str, Any]:
    """What `show` says once the job waits for its disk and its query has failed on it."""
    until(lambda: f"waiting: the disk of the home is {word}" in driver.text(), driver)
    found: dict[str, Any] = {}

    def failed() -> bool:
        found.update(json.loads(shown(home, "--json")))
        return found["state"] == "RESTARTING"

    until(failed, driver)
    return found


def round_trip(
    disk: SmallDisk, driver: Driver, producer: Producer, trouble: Callable[[bool], None], word: str
) -> dict[str, Any]:
    """Give the disk its trouble in the middle of the work, and take it away again."""
    for _ in range(2):
        before = checkpoints(disk.folder)
        producer.chunk()
        until(lambda: checkpoints(disk.folder) > before, driver)  # noqa: B023
    trouble(True)
    producer.chunk()
    value = waits(disk.folder, driver, word)
    text = shown(disk.folder)
    trouble(False)
    assert f"the disk of the home is {word}" in value["waiting"][0]["why"], value
    assert str(disk.folder) in value["waiting"][0]["why"], value
    assert f"the disk of the home is {word}" in text
    before = checkpoints(disk.folder)
    until(lambda: checkpoints(disk.folder) > before, driver)
    assert "waiting" not in shown(disk.folder)
    return value


@needs_mounts
@pytest.mark.slow
def test_a_job_waits_for_its_disk_and_goes_on_exactly(spark: SparkSession, tmp_path: Path) -> None:
    data, app = tmp_path / "data", store_with(tmp_path, PATIENT)
    with small_disk(tmp_path / "home", 96) as disk:
        home = disk.folder
        producer = Producer(data, orders=ORDERS, chunks=8, seed=8)
        driver = Driver(app, data, home)
        full = round_trip(
            disk, driver, producer, lambda yes: disk.fill() if yes else disk.free(), "full"
        )
        locked = round_trip(disk, driver, producer, disk.read_only, "read-only")
        producer.write_all()
        until(lambda: sum(rows.total() for rows in written(data).values()) >= ORDERS, driver)
        driver.process.terminate()
        assert driver.wait(120) == 0, driver.text()[-3000:]
        assert full["last_error"]["details"]["reason"] == "DISK_FULL", full
        assert locked["last_error"]["details"]["reason"] == "READ_ONLY", locked
        current = Home(str(home)).job("store").current()
        assert current is not None
        assert_in_order(current.events())
        assert_truth(spark, data, home, ORDERS)


def assert_in_order(events: list[Any]) -> None:
    """Whatever could not be written at its time is there now, in order and once."""
    kinds = [event.kind for event in events]
    assert kinds[0] == "started" and kinds[-1] == "stopped", kinds
    times = [event.at for event in events]
    assert times == sorted(times)
    attempts = [e.details["attempt"] for e in events if e.kind == "restarting"]
    assert attempts == list(range(1, len(attempts) + 1)), kinds
    assert kinds.count("failed") == len(attempts) >= 2, kinds


@needs_mounts
@pytest.mark.slow
def test_a_job_that_gives_up_says_why_and_show_says_it_from_memory(
    spark: SparkSession, tmp_path: Path
) -> None:
    data, app = tmp_path / "data", store_with(tmp_path, "hg.no_restart()")
    job = load_app(str(app)).job
    topics = topics_of(data)
    params = {name: topics.address(name) for name in (*INPUTS, *OUTPUTS)}
    producer = Producer(data, orders=2_000, chunks=3, seed=9)
    producer.chunk()
    with small_disk(tmp_path / "home", 96) as disk:
        home = Home(str(disk.folder)).job("store")
        handle = hg.start(job, spark=spark, params=params, home=str(disk.folder))
        while not checkpoints(disk.folder):
            with contextlib.suppress(TimeoutError):
                handle.wait("100 milliseconds")
        disk.fill()
        producer.chunk()
        with pytest.raises(JobFailedError, match=f"disk of the home is full .{disk.folder} has 0"):
            handle.wait("60 seconds")
        status = job_status(home)
        assert status.state == "FAILED" and status.failure is not None
        assert status.failure.details["reason"] == "DISK_FULL"
        on_disk = os.listdir(disk.folder / home.path / "runs/r1/events")
        assert on_disk == ["0000000001-started.json"]
        disk.free()
        # the next start is not kept out by the lease that could not be given back
        producer.write_all()
        run(job, spark=spark, params=params, home=str(disk.folder), bounded=True)
        kinds = [event.kind for event in home.run("r1").events()]
        assert kinds == ["started", "failed", "started", "finished"]
        assert read_note(home) is None
        assert_truth(spark, data, disk.folder, 2_000)
