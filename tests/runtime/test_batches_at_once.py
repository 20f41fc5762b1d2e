"""Rows that come after a pause are taken as they come, and no batch runs without input."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home

IDLE_LOOK = "spark.headgate.idle.look.ms"


class Copying:
    """A job that copies one embedded topic into another."""

    def __init__(self, spark: SparkSession, folder: Path, every: str) -> None:
        self._source, self._out = TopicFiles(folder / "in"), TopicFiles(folder / "out")
        self._source.create(1)

        @hg.job("at_once", checkpoints=hg.Checkpoints(every=every))
        def at_once(job: hg.Job) -> None:
            rows = job.source("rows", hg.topic(f"log:{folder}/in", schema="id BIGINT"))
            rows.sink("out", hg.topic(f"log:{folder}/out"))

        self.home = str(folder / "home")
        self.handle = hg.start(at_once, spark=spark, home=self.home)

    def send(self, number: int) -> None:
        self._source.append([Record(f'{{"id": {number}}}')], 0)

    def out(self) -> int:
        return sum(self._out.end_offsets().values()) if self._out.exists() else 0


def test_a_job_without_an_interval_takes_rows_as_they_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    job = Copying(spark, tmp_path, "0 seconds")
    for number in range(3):
        job.send(number)
        _until(lambda: job.out() == number + 1)  # noqa: B023
    time.sleep(1)  # as long as it takes for dozens of batches without rows
    began = time.monotonic()
    job.handle.stop()
    assert time.monotonic() - began < 10
    current = Home(job.home).job("at_once").current()
    assert current is not None
    assert len(current.checkpoints()) == 3


def test_rows_that_come_after_a_pause_do_not_wait_for_the_end_of_the_interval(
    spark: SparkSession, tmp_path: Path
) -> None:
    def idle() -> bool:
        queries = spark._jsparkSession.sharedState().activeStreamingQueries()
        return "Waiting for next trigger" in [queries[id].status().message() for id in queries]

    spark.conf.set(IDLE_LOOK, "10")  # as a job does whose interval is a tenth of a second
    try:
        job = Copying(spark, tmp_path, "1 hour")
        _until(idle)
        job.send(0)
        _until(lambda: job.out() == 1)
        job.handle.stop()
    finally:
        spark.conf.unset(IDLE_LOOK)


def _until(met: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "not met in time"
        time.sleep(0.02)
