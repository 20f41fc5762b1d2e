"""Aggregates that the optimizer, or a star, makes others than they look, in all steps."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

import headgate as hg
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STEPS = ("time", "session", "rows", "running")


def made_of(*aggregates: Column) -> hg.JobDef:
    """The same aggregates in windows of time, in windows of rows and in a running aggregate."""

    @hg.job("made")
    def define(job: hg.Job) -> None:
        visits = job.source(
            "visits",
            hg.topic("log:visits", schema="page STRING, id BIGINT, at TIMESTAMP"),
            event_time=hg.event_time("at"),
        ).key_by("page")
        names = "abcd"[: len(aggregates)]
        named = [made.alias(name) for made, name in zip(aggregates, names, strict=True)]
        windows = (hg.tumbling("1 minute"), hg.session("1 minute"), hg.count_window(3))
        told = [
            visits.window(step, window, *named).select(f"'{step}' AS step", "page", *names)
            for step, window in zip(STEPS, windows, strict=False)
        ]
        told[0].union(*told[1:]).sink("out", hg.topic("log:out"))
        visits.aggregate("running", *named).sink("now", hg.topic("log:now", key="page"))

    return define


def visit(page: str, id: int) -> dict[str, Any]:
    return {"page": page, "id": id, "at": (NOON + timedelta(seconds=id)).isoformat()}


def test_aggregates_that_the_optimizer_makes_alike_keep_states_of_their_own(
    job_driver: Make,
) -> None:
    one = F.coalesce(F.col("id"), F.lit(0))
    job = made_of(F.count("*"), F.count_if(F.lit(True)), F.count(one), F.count("*") + F.count(one))
    t = job_driver(job, parallelism=2)
    t.send("visits", visit("x", 1), visit("y", 2)).run()
    t.restore(t.savepoint("first"), parallelism=1)
    t.send("visits", visit("x", 3), visit("x", 5)).run()
    assert {key: row and row["d"] for key, row in t.changes("now")} == {"x": 6, "y": 2}
    t.run(drain=True)
    rows = sorted((r["step"], r["page"], r["a"], r["b"], r["c"], r["d"]) for r in t.rows("out"))
    assert rows == sorted(
        (step, page, n, n, n, 2 * n) for step in STEPS[:3] for page, n in (("x", 3), ("y", 1))
    )
    state = {r["key"]["page"]: r["row"] for r in t.state("running").all()}
    assert {page: (r["a"], r["b"], r["c"]) for page, r in state.items()} == {
        "x": (3, 3, 3), "y": (1, 1, 1),
    }  # fmt: skip


def test_a_star_is_of_the_columns_that_users_see(job_driver: Make) -> None:
    t = job_driver(made_of(F.max(F.struct("*")), F.count(F.struct("*")), F.max_by("id", "id")))
    t.send("visits", visit("x", 1), visit("x", 2), visit("x", 3)).run(drain=True)
    rows = {r["step"]: r for r in t.rows("out")}
    assert set(rows) == set(STEPS[:3])
    for row in [*rows.values(), t.changes("now")[-1][1]]:
        assert row is not None
        assert set(row["a"]) == {"page", "id", "at"}
        assert (row["a"]["id"], row["b"], row["c"]) == (3, 3, 3)


def test_an_aggregate_that_is_the_same_for_all_rows_is_computed(job_driver: Make) -> None:
    t = job_driver(made_of(F.count(F.lit(None)), F.count("*"), F.count_if(F.lit(False))))
    t.send("visits", visit("x", 1)).run()
    t.send("visits", visit("x", 2)).run(drain=True)
    assert [(row["a"], row["b"], row["c"]) for row in t.rows("out")] == [(0, 2, 0)] * 3
    ((_, row),) = t.changes("now")[-1:]
    assert row == {"page": "x", "a": 0, "b": 2, "c": 0}
