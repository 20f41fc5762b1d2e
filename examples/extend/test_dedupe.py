"""The kind `first_only` in a job that is crashed at every point of a commit and resumed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import headgate as hg
from headgate.testing import JobDriver, assert_crash_safe

from .dedupe import Dedupe


def job(within: timedelta) -> hg.JobDef:
    @hg.job("once")
    def once(job: hg.Job) -> None:
        events = job.source("events", hg.topic("log:events", schema="id STRING, value BIGINT"))
        first = events.key_by("id").step("once", Dedupe(within))
        first.sink("first", hg.topic("log:first"))
        first.side("duplicates").sink("again", hg.topic("log:again"))

    return once


SCRIPT = [("events", {"id": id, "value": n}) for n, id in enumerate("abacabadd")]


def test_each_key_passes_once_until_it_is_forgotten(
    job_driver: Callable[[hg.JobDef], JobDriver],
) -> None:
    t = job_driver(job(timedelta(hours=1)))
    for source, event in SCRIPT:
        t.send(source, event)
    t.run()
    assert sorted(row["value"] for row in t.rows("first")) == [0, 1, 3, 7]
    assert sorted(row["value"] for row in t.rows("again")) == [2, 4, 5, 6, 8]
    t.advance_processing_time("2 hours").run()
    t.send("events", {"id": "a", "value": 9}).run()
    assert [row["value"] for row in t.rows("first")] == [9]


def test_it_is_a_kind_like_any_other(job_driver: Callable[[hg.JobDef], JobDriver]) -> None:
    t = job_driver(job(timedelta(hours=1)))
    step = t.built.graph.step("once")
    assert (step.kind, step.role, step.labels["within_seconds"]) == ("first_only", "step", "3600.0")
    note = Dedupe.fits({"within_seconds": 3600.0}, {"within_seconds": 60.0}).note
    assert note == "keys seen so far are kept for 3600 s, new ones for 60 s"


def test_no_crash_lets_a_key_pass_twice_or_not_at_all() -> None:
    assert_crash_safe(job(timedelta(hours=1)), SCRIPT)
