"""Deduplication through the public API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headgate as hg
from headgate.testing import JobDriver, assert_crash_safe

Make = Callable[..., JobDriver]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVENT = "n BIGINT, id STRING, at TIMESTAMP"


def once(within: str | None, *, timed: bool = True) -> hg.JobDef:
    """The first event of each id, and the others."""

    @hg.job("once")
    def define(job: hg.Job) -> None:
        time = hg.event_time("at") if timed else None
        events = job.source("events", hg.topic("log:events", schema=EVENT), event_time=time)
        first = events.key_by("id").dedupe("once", within=within)
        first.sink("out", hg.topic("log:out"))
        first.duplicates.sink("again", hg.topic("log:again"))

    return define


def event(n: int, id: str | None, second: int | None) -> dict[str, Any]:
    when = None if second is None else (NOON + timedelta(seconds=second)).isoformat()
    return {"n": n, "id": id, "at": when}


def told(t: JobDriver) -> tuple[list[int], list[int]]:
    """New rows that passed, and duplicates."""
    return sorted(r["n"] for r in t.rows("out")), sorted(r["n"] for r in t.rows("again"))


def test_the_first_row_of_a_key_passes_by_its_place_in_the_source(job_driver: Make) -> None:
    t = job_driver(once(None))
    t.send("events", event(1, "a", 50), event(2, "a", 10), event(3, "b", 10), event(4, None, 10))
    t.send("events", event(5, None, 20)).run()
    assert told(t) == ([1, 3, 4], [2, 5])
    t.send("events", event(6, "a", 9999), event(7, "c", 1)).run()
    assert told(t) == ([7], [6])
    counts = t.metrics("once")
    assert (counts["records_in"], counts["records_out"]) == (7, 4)
    assert counts["records_out_duplicates"] == 3
    assert {r["key"]["id"] for r in t.state("once").all()} == {"a", "b", "c", None}


def test_a_key_is_forgotten_after_the_event_time_has_passed(job_driver: Make) -> None:
    t = job_driver(once("1 minute"))
    t.send("events", event(1, "a", 0), event(2, "b", 0)).run()
    t.send("events", event(3, "a", 59), event(4, "b", 60), event(5, "b", 100)).run()
    assert told(t) == ([1, 2, 4], [3, 5])
    t.send("events", event(6, "c", 1000)).run()
    t.send("events", event(7, "c", 1001)).run()
    assert told(t) == ([6], [7])
    assert [r["key"]["id"] for r in t.state("once").all()] == ["c"]
    assert t.state("once", "due").get(id="c") is not None


def test_without_event_time_a_key_is_forgotten_by_the_clock(job_driver: Make) -> None:
    t = job_driver(once("1 hour", timed=False))
    t.send("events", event(1, "a", None), event(2, "a", None)).run()
    t.send("events", event(3, "a", None)).run()
    assert told(t) == ([1], [2, 3])
    t.advance_processing_time("1 hour")
    t.send("events", event(4, "a", None)).run()
    assert told(t) == ([4], [])


def test_another_time_may_be_asked_for(job_driver: Make) -> None:
    t = job_driver(once(None))
    t.send("events", event(1, "a", 0), event(2, "b", 100)).run()
    t.restore(job=once("1 minute"), parallelism=3)
    t.send("events", event(3, "b", 110)).run()
    assert told(t) == ([1, 2], [3])
    assert [r["key"]["id"] for r in t.state("once").all()] == ["b"]
    t.restore(job=once("2 minutes"))
    t.send("events", event(4, "b", 219), event(5, "c", 219)).run()
    t.send("events", event(6, "b", 220)).run()
    assert told(t) == ([5, 6], [4])
    t.restore(job=once("1 minute", timed=False))
    with pytest.raises(hg.RefusedError, match="it went by event time and goes by processing time"):
        t.run()


@pytest.mark.parametrize("timed", [True, pytest.param(False, marks=pytest.mark.long)])
def test_dedupe_is_exact_wherever_the_driver_dies(spark: object, timed: bool) -> None:
    script = [("events", event(n, "abcde"[n * n % 5], n * 7)) for n in range(24)]
    # by the clock nothing is to be forgotten while the test runs
    within = "40 seconds" if timed else "10 hours"
    assert_crash_safe(once(within, timed=timed), script)


def test_a_dedupe_step_needs_a_key_and_a_time_above_zero() -> None:
    def made(keys: tuple[str, ...], within: str) -> hg.JobDef:
        @hg.job("wrong")
        def define(job: hg.Job) -> None:
            events = job.source("events", hg.topic("log:events", schema=EVENT))
            events.key_by(*keys).dedupe("once", within=within).sink("out", hg.topic("log:out"))

        return define

    with pytest.raises(hg.GraphError, match="a dedupe step needs a key"):
        made((), "1 hour").describe()
    with pytest.raises(hg.GraphError, match="within must be a whole number of milliseconds above"):
        made(("id",), "0 seconds").describe()
