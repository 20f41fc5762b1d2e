"""Columns with names that SQL has to quote, through every kind of step that picks columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as F

import headgate as hg
from headgate import jvm
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
EVENT = "`the id` BIGINT, user STRING, `select` BIGINT, at TIMESTAMP"
USER = "user STRING, `home.town` STRING"


@hg.job("odd_names")
def odd_names(job: hg.Job) -> None:
    events = job.source(
        "events", hg.topic("log:events", schema=EVENT), event_time=hg.event_time("at"),
        malformed="side",
    )  # fmt: skip
    users = job.table("users", hg.topic("log:users", schema=USER), key="user")
    first = events.key_by("`the id`").dedupe("once")
    found = first.lookup("users_lookup", users, on="user", take=["`home.town`"], missing="side")
    found.sink("found", hg.topic("log:found"))
    found.missing.sink("missing", hg.topic("log:missing"))
    first.duplicates.sink("again", hg.topic("log:again"))
    counts = first.key_by("user").window(
        "counts", hg.tumbling("1 minute"), F.sum("select").alias("the sum")
    )
    counts.select("user", "`the sum`").sink("counted", hg.topic("log:counted"))
    counts.late.sink("late", hg.topic("log:late"))
    best = first.key_by("user").top("best", 1, by="`the id` % 2", within=hg.tumbling("1 minute"))
    best.select("`the id`", "rank").sink("best_out", hg.topic("log:best"))


def event(id: int, user: str, second: int) -> dict[str, Any]:
    at = f"2026-01-01T12:00:{second:02}+00:00"
    return {"the id": id, "user": user, "select": id * 10, "at": at}


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without their times, by id."""
    without = [{k: v for k, v in row.items() if k != "at"} for row in rows]
    return sorted(without, key=lambda row: row.get("the id", 0))


def test_names_that_sql_has_to_quote_pass_every_step(job_driver: Make) -> None:
    t = job_driver(odd_names)
    t.send("users", {"user": "ann", "home.town": "Bath"}).run()
    t.send("events", event(1, "ann", 1), event(1, "ann", 2), event(2, "bob", 3), event(3, "ann", 4))
    t.run()
    assert plain(t.rows("found")) == [
        {"the id": 1, "user": "ann", "select": 10, "home.town": "Bath"},
        {"the id": 3, "user": "ann", "select": 30, "home.town": "Bath"},
    ]
    assert plain(t.rows("missing")) == [{"the id": 2, "user": "bob", "select": 20}]
    assert plain(t.rows("again")) == [{"the id": 1, "user": "ann", "select": 10}]
    t.advance_watermark("events", "2026-01-01T12:05:00").run()
    assert sorted((r["user"], r["the sum"]) for r in t.rows("counted")) == [
        ("ann", 40),
        ("bob", 20),
    ]
    t.send("events", event(4, "bob", 5)).run()
    assert plain(t.rows("late")) == [{"the id": 4, "user": "bob", "select": 40}]
    assert plain(t.rows("best_out")) == [{"the id": 1, "rank": 1}, {"the id": 2, "rank": 1}]


def test_quotes_in_a_name_are_doubled() -> None:
    assert jvm.quoted("row", "a`b", alias="`") == "`row`.`a``b` AS ````"
