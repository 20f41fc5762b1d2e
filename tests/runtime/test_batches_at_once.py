"""Rows that come after a pause are taken as they come, and no batch runs without input."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home

IDLE_LOOK = "spark.headgate.idle.look.ms"
CLOCK = "spark.headgate.clock.offset.ms"
MINUTE = 60_000


class Copying:
    """A job that copies one embedded topic into another, and was started with no rows there."""

    def __init__(self, spark: SparkSession, folder: Path, every: str) -> None:
        self._source, self._out = TopicFiles(folder / "in"), TopicFiles(folder / "out")
        self._source.create(2)

        @hg.job("at_once", checkpoints=hg.Checkpoints(every=every))
        def at_once(job: hg.Job) -> None:
            rows = job.source("rows", hg.topic(f"log:{folder}/in", schema="id BIGINT"))
            rows.sink("out", hg.topic(f"log:{folder}/out"))

        self._home = Home(str(folder / "home"))
        self._handle = hg.start(at_once, spark=spark, home=str(folder / "home"))
        # Spark runs a first batch to write down where reading begins
        until(lambda: self.batches() == 1)

    def send(self, number: int) -> None:
        self._source.append([Record(f'{{"id": {number}}}')], number % 2)

    def out(self) -> int:
        return sum(self._out.end_offsets().values()) if self._out.exists() else 0

    def batches(self) -> int:
        current = self._home.job("at_once").current()
        return len(current.checkpoints()) if current is not None else 0

    def stop_at_once(self) -> None:
        began = time.monotonic()
        self._handle.stop()
        assert time.monotonic() - began < 10


@pytest.fixture
def setting(spark: SparkSession) -> Iterator[Callable[[str, int], None]]:
    """Set a setting of the kernel for the jobs of one test."""
    yield lambda name, value: spark.conf.set(name, str(value))
    spark.conf.unset(IDLE_LOOK)
    spark.conf.unset(CLOCK)


def test_a_job_without_an_interval_takes_rows_as_they_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = Copying(spark, tmp_path, "0 seconds")
    for number in range(3):
        job.send(number)
        until(lambda: job.out() == number + 1)  # noqa: B023
    time.sleep(1)  # as long as it takes for dozens of batches without rows
    job.stop_at_once()
    assert job.batches() == 4


def test_the_first_rows_do_not_wait_for_the_end_of_the_interval_but_those_after_them_do(
    spark: SparkSession, tmp_path: Path, setting: Callable[[str, int], None]
) -> None:
    setting(IDLE_LOOK, 10)
    job = Copying(spark, tmp_path, "1 hour")
    time.sleep(1)  # dozens of looks
    assert job.batches() == 1
    job.send(0)
    until(lambda: job.out() == 1)
    job.send(1)
    time.sleep(1)
    job.stop_at_once()
    assert (job.out(), job.batches()) == (1, 2)


def test_a_job_looks_without_a_setting_if_its_interval_is_a_minute(
    spark: SparkSession, tmp_path: Path, setting: Callable[[str, int], None]
) -> None:
    # the clock of the job shows the beginning of a minute now, so the next one is far away
    setting(CLOCK, MINUTE - int(time.time() * 1000) % MINUTE)
    job = Copying(spark, tmp_path, "1 minute")
    job.send(0)
    until(lambda: job.out() == 1, seconds=30)
    job.stop_at_once()


def test_a_job_whose_looks_are_off_takes_rows_when_its_interval_is_over(
    spark: SparkSession, tmp_path: Path, setting: Callable[[str, int], None]
) -> None:
    setting(IDLE_LOOK, 0)
    job = Copying(spark, tmp_path, "1 hour")
    job.send(0)
    time.sleep(1)
    job.stop_at_once()
    assert (job.out(), job.batches()) == (0, 1)


def until(met: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "not met in time"
        time.sleep(0.02)
