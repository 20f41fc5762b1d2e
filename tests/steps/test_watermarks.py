"""Watermarks of several sources: the least of those that are not idle, also after restarts."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import GraphError, NotFoundError, UsageError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.event_time import EventTimeRecord
from headgate.home.layout import Home
from headgate.home.model import CheckpointRecord
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
ROW = "id BIGINT, at TIMESTAMP"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pair(idle_after: str | None = "2 minutes") -> hg.JobDef:
    """Rows of two sources with names from a table, in windows of a minute; and of one, of two."""

    @hg.job("pair")
    def define(job: hg.Job) -> None:
        a = job.source("a", hg.topic("log:a", schema=ROW), event_time=hg.event_time("at"))
        b = job.source(
            "b",
            hg.topic("log:b", schema=ROW),
            event_time=hg.event_time("at", out_of_orderness="10 s", idle_after=idle_after),
        )
        names = job.table("names", hg.topic("log:names", schema="id BIGINT, name STRING"), key="id")
        both = a.union(b).lookup("named", names, on="id", take=["name"])
        minutes = both.key_by("name").window(
            "minutes", hg.tumbling("1 minute"), F.count("*").alias("n")
        )
        minutes.sink("out", hg.topic("log:out"))
        minutes.late.sink("late", hg.topic("log:late"))
        a.key_by("id").window("ids", hg.tumbling("2 minutes"), F.count("*").alias("n")).sink(
            "ids_out", hg.topic("log:ids")
        )

    return define


def at(seconds: int, id: int = 1) -> dict[str, Any]:
    return {"id": id, "at": (NOON + timedelta(seconds=seconds)).isoformat()}


def starts(t: JobDriver, sink: str = "out") -> list[int]:
    """When the windows of new rows begin, in seconds after noon."""
    return sorted(round((r["window_start"] - NOON).total_seconds()) for r in t.rows(sink))


def last(t: JobDriver) -> CheckpointRecord:
    run = Home(t.home).job("pair").current()
    assert run is not None
    record = run.latest_checkpoint()
    assert record is not None
    assert CheckpointRecord.from_json(record.to_json()) == record
    return record


def times(t: JobDriver) -> tuple[EventTimeRecord, int | None, dict[str, int | None]]:
    """The newest record of event time; the job's and the sources' watermarks after noon."""
    found = last(t).event_time
    assert found is not None

    def seconds(when: datetime | None) -> int | None:
        return round((when - NOON).total_seconds()) if when else None

    return (
        found,
        seconds(found.next),
        {name: seconds(s.watermark) for name, s in found.sources.items()},
    )


def test_an_idle_source_is_not_waited_for_until_it_gives_rows_again(job_driver: Make) -> None:
    t = job_driver(pair())
    t.send("a", at(5), at(65), at(130)).run()
    time, job, marks = times(t)
    assert (starts(t), job, marks) == ([], None, {"a": 130, "b": None})
    assert time.reason() == "no rows yet from source 'b'" and time.advice() is None
    # silence is counted between batches, and what it lets close is closed without rows
    t.advance_processing_time("3 minutes").run()
    time, job, marks = times(t)
    assert (starts(t), starts(t, "ids_out"), job) == ([0, 60], [0], 130)
    assert time.sources["b"].state == "idle" and time.reason() is None
    # in a fork, too, b counts again once it gives rows; the job's watermark does not go back
    t.send("b", at(100), at(170)).send("a", at(400)).restore(t.savepoint(), parallelism=3).run()
    time, job, marks = times(t)
    assert (job, marks) == (160, {"a": 400, "b": 160})
    assert time.holder() == ("b", timedelta(seconds=240))
    assert time.reason() == "source 'b' holds it back by 4m 00s"
    assert (starts(t), starts(t, "ids_out")) == ([], [])
    assert [r["id"] for r in t.rows("late")] == [1]  # of 12:01:40, when 12:02:10 had passed
    t.send("b", at(320)).run()
    assert (starts(t), starts(t, "ids_out"), times(t)[1]) == ([120], [120], 310)
    # an hour in which the job was down is no silence of a source that has rows then
    t.advance_processing_time("1 hour").send("b", at(330)).run()
    assert (starts(t), times(t)[1]) == ([], 320)
    # all are silent, but a has no idle_after: the watermark is its own
    t.advance_processing_time("1 hour").run()
    assert (starts(t), times(t)[1]) == ([300], 400)
    t.run(drain=True)
    time, job, _ = times(t)
    assert starts(t) == [360] and time.ended and time.reason() == "event time was ended by a drain"
    assert t.state("minutes").all() == [] == t.state("ids").all()


def test_a_replayed_batch_and_a_restarted_job_know_who_was_idle(job_driver: Make) -> None:
    t = job_driver(pair("1 minute"))
    t.send("a", at(10), at(130)).send("b", at(75)).run()
    assert (starts(t), times(t)[1]) == ([0], 65)
    t.advance_processing_time("2 minutes")
    # the batch in which b is found idle dies before its commit; its replay finds the same
    t.send("a", at(140)).crash("after_sink").restore().run()
    assert (starts(t), times(t)[1]) == ([60], 140)
    assert times(t)[0].sources["b"].state == "idle"
    assert starts(t) == [] and t.metrics("minutes")["records_out"] == 2
    before = times(t)[0].sources["b"]
    t.run()  # a restart: b is idle as it was, and does not hold anything back
    assert times(t)[0].sources["b"] == before and times(t)[1] == 140
    # an earlier checkpoint, made while b counted: it goes on from there, and finds b idle again
    t.restore("r1/ck:0").send("a", at(200)).run()
    assert times(t)[1] == 200
    assert [s for s in starts(t) if s < 180] == [0, 60, 120]


def test_a_silent_source_without_idle_after_holds_the_job_and_this_is_said(
    job_driver: Make,
) -> None:
    t = job_driver(pair(None))
    t.send("a", at(5)).send("b", at(40)).run()
    assert times(t)[1] == 5
    t.advance_processing_time("1 day").send("a", at(600)).run()
    time, job, _ = times(t)
    assert (starts(t), job) == ([], 30)
    assert time.reason() == "source 'b' holds it back by 9m 30s"
    assert "source 'b' has had no rows since" in (time.advice() or "")
    # watermarks can be moved without rows
    with pytest.raises(NotFoundError, match="no source 'names' with event time"):
        t.advance_watermark("names", NOON)
    with pytest.raises(UsageError, match="must be a datetime or ISO text"):
        t.advance_watermark("b", "noon")
    t.advance_watermark("b", "2026-01-01T12:02:00").crash("before_sink").restore().run()
    assert (starts(t), times(t)[1]) == ([0], 120)
    t.advance_watermark("b", NOON).run()
    assert times(t)[1] == 120


def test_what_is_wrong_about_event_time_is_told(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="idle_after must be greater than zero"):
        hg.event_time("at", idle_after="0 s")

    @hg.job("marked")
    def marked(job: hg.Job) -> None:
        def rates(spark: SparkSession) -> DataFrame:
            return spark.readStream.format("rate").load().withWatermark("timestamp", "1 second")

        job.source("rates", rates).sink("out", hg.topic("log:out"))

    with pytest.raises(GraphError, match="calls withWatermark"):
        marked.describe()


def test_a_running_job_closes_windows_when_a_source_becomes_idle(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    @hg.job("idle_windows", checkpoints=hg.Checkpoints(every="100 ms"))
    def running(job: hg.Job) -> None:
        def source(name: str, idle_after: str | None) -> hg.SourceStream:
            return job.source(
                name,
                hg.topic(f"log:{name}", schema=ROW),
                event_time=hg.event_time("at", idle_after=idle_after),
            )

        both = source("a", None).union(source("b", "2 seconds"))
        window = both.key_by().window("w", hg.tumbling("1 minute"), F.count("*").alias("n"))
        window.sink("out", hg.topic("log:out"))

    for name in ("a", "b"):
        TopicFiles(tmp_path / name).create(1)
    TopicFiles(tmp_path / "a").append([Record(json.dumps(at(s))) for s in (1, 2, 70)])
    out = TopicFiles(tmp_path / "out")
    handle = hg.start(running, spark=spark, home=str(tmp_path / "home"))
    until = monotonic() + 90
    while not (out.exists() and list(out.read(None))):
        if not handle.running:
            handle.wait()  # says why
        assert monotonic() < until
        sleep(0.05)
    handle.stop(savepoint=False)
    assert [json.loads(r.value or "")["n"] for r in out.read(None)] == [2]
    run = Home(tmp_path / "home").job("idle_windows").current()
    first, *_, closed = run.checkpoints() if run else []
    assert first.event_time is not None and first.event_time.next is None
    assert closed.event_time is not None and closed.rows["a"]["records_out"] == 0
    b = closed.event_time.sources["b"]
    assert b.idle_since is not None and b.since == first.event_time.at
    assert b.idle_since - b.since == timedelta(seconds=2) <= closed.event_time.at - b.since
