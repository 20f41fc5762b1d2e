"""A job without an interval: batches follow on each other, and none runs without input."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home


def test_a_job_without_an_interval_takes_rows_as_they_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = TopicFiles(tmp_path / "in")
    source.create(1)

    @hg.job("at_once", checkpoints=hg.Checkpoints(every="0 seconds"))
    def at_once(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic(f"log:{tmp_path}/in", schema="id BIGINT"))
        rows.sink("out", hg.topic(f"log:{tmp_path}/out"))

    home = str(tmp_path / "home")
    handle = hg.start(at_once, spark=spark, home=home)

    def out() -> int:
        topic = TopicFiles(tmp_path / "out")
        return sum(topic.end_offsets().values()) if topic.exists() else 0

    for number in range(3):
        source.append([Record(f'{{"id": {number}}}')], 0)
        _until(lambda: out() == number + 1)  # noqa: B023
    time.sleep(1)  # as long as it takes for dozens of batches without rows
    began = time.monotonic()
    handle.stop()
    assert time.monotonic() - began < 10
    current = Home(home).job("at_once").current()
    assert current is not None
    assert len(current.checkpoints()) == 3


def _until(met: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "not met in time"
        time.sleep(0.02)
