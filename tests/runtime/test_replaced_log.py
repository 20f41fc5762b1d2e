"""Log topics that are deleted and recreated are noticed by their ids, longer or not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import RefusedError
from headgate.connectors.log.files import Record, TopicFiles
from tests.reading import Reading, Running


@pytest.fixture
def reading(spark: SparkSession, tmp_path: Path) -> Reading:
    return Reading(spark, tmp_path)


def made(folder: Path, numbers: range) -> hg.Source:
    """A topic with these ids, in the place of what was there."""
    path = folder / "in"
    if path.exists():
        shutil.rmtree(path)
    TopicFiles(path).create(2)
    append(folder, numbers)
    return hg.LogSource(str(path), "id BIGINT")


def append(folder: Path, numbers: range) -> None:
    TopicFiles(folder / "in").append(Record(json.dumps({"id": n}), str(n)) for n in numbers)


def test_should_not_read_on_in_a_topic_that_was_made_again_meanwhile(reading: Reading) -> None:
    reading.go(made(reading.folder, range(100)))
    source = made(reading.folder, range(1000, 1500))
    for restore in (None, "latest"):
        with pytest.raises(RefusedError, match="deleted and recreated"):
            reading.go(source, restore=restore)
    assert reading.ids() == list(range(100))
    reading.go(source, fresh=True)
    assert reading.ids() == [*range(100), *range(1000, 1500)]


def test_should_fail_when_a_topic_is_made_again_while_the_job_runs(reading: Reading) -> None:
    job = Running(reading, made(reading.folder, range(50)), every="1 hour")
    try:
        job.until(lambda: len(reading.ids()) == 50)
        made(reading.folder, range(1000, 1500))
        job.trigger()
        job.until(lambda: job.ended or len(reading.ids()) > 50)
    finally:
        ended = job.stop()
    assert reading.ids() == list(range(50))
    assert ended.how == "failed" and "was deleted and recreated" in str(ended.error)


def test_should_read_on_in_a_topic_that_has_no_id(reading: Reading) -> None:
    source = made(reading.folder, range(10))
    settings = reading.folder / "in" / "topic.json"
    settings.write_text('{"version":1,"partitions":2}')  # as older versions made it
    reading.go(source)
    append(reading.folder, range(10, 20))
    reading.go(source)
    assert reading.ids() == list(range(20))
    made(reading.folder, range(1000, 1500))
    with pytest.raises(RefusedError, match="deleted and recreated"):
        reading.go(source)
