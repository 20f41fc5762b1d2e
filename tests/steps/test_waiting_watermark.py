"""Rows that wait in a lookup hold the watermark: they are not late for what follows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.home.event_time import EventTimeRecord
from headgate.home.layout import Home
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDER = "id BIGINT, user_id BIGINT, at TIMESTAMP"


def per_minute(wait: hg.Wait, **event_time: Any) -> hg.JobDef:
    """Orders with their users' names, counted by name and minute."""

    @hg.job("per_minute")
    def define(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
        orders = job.source(
            "orders",
            hg.topic("log:orders", schema=ORDER),
            event_time=hg.event_time("at", **event_time),
        )
        found = orders.lookup("users_lookup", users, on="user_id", take=["name"], missing=wait)
        minutes = found.key_by("name").window(
            "minutes", hg.tumbling("1 minute"), F.count("*").alias("n")
        )
        minutes.sink("out", hg.topic("log:out"))
        minutes.late.sink("late", hg.topic("log:late"))
        found.missing.sink("unknown", hg.topic("log:unknown"))

    return define


def order(id: int, user: int, second: int) -> dict[str, Any]:
    return {"id": id, "user_id": user, "at": (NOON + timedelta(seconds=second)).isoformat()}


def counts(t: JobDriver) -> Counter[tuple[str, int]]:
    """New windows: by name and minute, how many rows."""
    found: Counter[tuple[str, int]] = Counter()
    for r in t.rows("out"):
        found[r["name"], (r["window_start"] - NOON) // timedelta(minutes=1)] += r["n"]
    return found


def time_of(t: JobDriver) -> tuple[EventTimeRecord, int | None]:
    """The newest record of event time, and the job's watermark in seconds after noon."""
    run = Home(t.home).job("per_minute").current()
    record = run.latest_checkpoint() if run else None
    assert record is not None and record.event_time is not None
    time = record.event_time
    assert EventTimeRecord.from_json(time.to_json()) == time
    return time, round((time.next - NOON).total_seconds()) if time.next else None


@pytest.mark.slow
def test_a_row_that_waited_is_counted_in_its_window(job_driver: Make) -> None:
    t = job_driver(per_minute(hg.Wait("10 minutes")))
    t.send("users", {"id": 1, "name": "Ann"})
    t.send("orders", order(1, 1, 10), order(2, 2, 20), order(3, 2, 30), order(4, 3, 40)).run()
    t.send("orders", order(5, 1, 300)).run()
    time, mark = time_of(t)
    assert (counts(t), mark) == ({}, 20)
    until = time.waiting["users_lookup"].until
    assert until is not None
    assert time.reason() == (
        f"held by 3 rows that wait in users_lookup, until "
        f"{until.isoformat(timespec='milliseconds').replace('+00:00', 'Z')}"
    )
    assert timedelta() < until - time.at <= timedelta(minutes=10)
    # it is held after a restart, too, and in a batch that is replayed
    t.send("orders", order(6, 1, 310)).crash("after_sink").restore().run()
    assert (counts(t), time_of(t)[1]) == ({}, 20)
    t.send("users", {"id": 2, "name": "Bob"}).crash("before_sink").restore().run()
    time, mark = time_of(t)
    assert (mark, time.waiting["users_lookup"].rows) == (40, 1)
    assert (time.reason() or "").startswith("held by 1 row that waits in users_lookup, until ")
    assert counts(t) == {}
    # a fork with another parallelism knows it as well
    t.restore(t.savepoint(), parallelism=3).send("orders", order(7, 1, 320)).run()
    assert (counts(t), time_of(t)[1]) == ({}, 40)
    # when the time of the last one is up the watermark goes on
    t.advance_processing_time("11 minutes").run()
    time, mark = time_of(t)
    assert (mark, time.reason(), time.waiting) == (320, None, {})
    assert [r["id"] for r in t.rows("unknown")] == [4]
    t.run(drain=True)
    assert counts(t) == {("Ann", 0): 1, ("Bob", 0): 2, ("Ann", 5): 3}
    assert t.rows("late") == [] and t.metrics("minutes").get("records_out_late", 0) == 0


def test_a_row_that_came_late_holds_nothing(job_driver: Make) -> None:
    t = job_driver(per_minute(hg.Wait("10 minutes")))
    t.send("users", {"id": 1, "name": "Ann"}).send("orders", order(1, 1, 300)).run()
    t.send("orders", order(2, 2, 10), order(3, 1, 400)).run()
    time, mark = time_of(t)
    assert (mark, time.reason(), time.waiting["users_lookup"].rows) == (400, None, 1)
    t.send("users", {"id": 2, "name": "Bob"}).run()
    assert [r["id"] for r in t.rows("late")] == [2]


def test_the_watermark_goes_on_if_it_is_not_held(job_driver: Make, spark: SparkSession) -> None:
    definition = per_minute(hg.Wait("10 minutes", hold_watermark=False))
    (warning,) = definition.build(spark=spark, check_connectors=False).graph.warnings
    assert "'users_lookup'" in warning and "may be late for 'minutes'" in warning
    assert (
        not per_minute(hg.Wait("1 day")).build(spark=spark, check_connectors=False).graph.warnings
    )
    t = job_driver(definition)
    t.send("orders", order(1, 2, 10), order(2, 2, 300)).run()
    assert time_of(t)[1] == 300
    t.send("orders", order(3, 3, 310)).run()
    t.send("users", {"id": 2, "name": "Bob"}).run()
    t.run(drain=True)
    assert counts(t) == {("Bob", 5): 1}
    assert [r["id"] for r in t.rows("late")] == [1]


def test_rows_that_waited_before_it_was_held_hold_it_after_a_restore(job_driver: Make) -> None:
    t = job_driver(per_minute(hg.Wait("10 minutes", hold_watermark=False)))
    t.send("orders", order(1, 2, 10)).run()
    # their state has no event times in order, as that of older versions
    t.restore(job=per_minute(hg.Wait("10 minutes"))).send("orders", order(2, 3, 300)).run()
    time, mark = time_of(t)
    assert (mark, time.held_by_waiting()) == (10, "users_lookup")
    t.send("users", {"id": 2, "name": "Bob"}).run()
    t.run(drain=True)
    assert counts(t) == {("Bob", 0): 1} and t.rows("late") == []


@pytest.mark.slow
def test_no_row_is_late_whenever_its_user_comes(job_driver: Make) -> None:
    rng = random.Random(7)
    t = job_driver(per_minute(hg.Wait("1 day"), out_of_orderness="30 seconds"))
    truth: Counter[tuple[str, int]] = Counter()
    got: Counter[tuple[str, int]] = Counter()
    users = list(range(1, 13))
    rng.shuffle(users)
    for batch in range(6):
        coming = [users.pop() for _ in range(2)]
        t.send("users", *[{"id": u, "name": f"u{u}"} for u in coming])
        # within the disorder that is declared
        rows = [(rng.randrange(1, 13), 40 * batch + rng.randrange(50)) for _ in range(12)]
        t.send("orders", *[order(100 * batch + n, u, s) for n, (u, s) in enumerate(rows)])
        truth.update((f"u{u}", s // 60) for u, s in rows)
        if rng.random() < 0.4:
            t.crash(rng.choice(["before_sink", "after_sink"])).restore()
        t.run()
        got += counts(t)
    t.run(drain=True)
    assert got + counts(t) == truth
    assert t.rows("late") == [] == t.rows("unknown")


def test_all_sources_idle_and_the_greatest_watermark_is_taken(job_driver: Make) -> None:
    @hg.job("per_minute")
    def define(job: hg.Job) -> None:
        streams = [
            job.source(
                name,
                hg.topic(f"log:{name}", schema="id BIGINT, at TIMESTAMP"),
                event_time=hg.event_time("at", idle_after="1 minute"),
            )
            for name in ("a", "b")
        ]
        windows = (
            streams[0]
            .union(streams[1])
            .key_by("id")
            .window("minutes", hg.tumbling("1 minute"), F.count("*").alias("n"))
        )
        windows.sink("out", hg.topic("log:out"))

    def at(second: int) -> dict[str, Any]:
        return {"id": 1, "at": (NOON + timedelta(seconds=second)).isoformat()}

    t = job_driver(define)
    t.send("a", at(10)).send("b", at(70)).run()
    assert time_of(t)[1] == 10
    t.advance_processing_time("2 minutes").run()
    time, mark = time_of(t)
    assert mark == 70 and (time.reason() or "").startswith("all sources are idle since ")
    assert [r["window_start"] for r in t.rows("out")] == [NOON]
    # it does not go back when the slower one wakes up
    t.send("a", at(20)).run()
    assert time_of(t)[1] == 70
