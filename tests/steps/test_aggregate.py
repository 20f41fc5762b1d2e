"""Running aggregates and streams of changes through the public API."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.testing import JobDriver, assert_crash_safe

Make = Callable[..., JobDriver]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDER = "user STRING, price BIGINT, at TIMESTAMP"


def totals(*, timed: bool = True, **options: Any) -> hg.JobDef:
    """What each user has paid so far."""

    @hg.job("totals")
    def define(job: hg.Job) -> None:
        time = hg.event_time("at") if timed else None
        orders = job.source("orders", hg.topic("log:orders", schema=ORDER), event_time=time)
        made = orders.key_by("user").aggregate(
            "totals", F.sum("price").alias("total"), F.count("*").alias("n"), **options
        )
        made.sink("out", hg.topic("log:out", key="user"))

    return define


def order(user: str | None, price: int, second: int = 0) -> dict[str, Any]:
    return {"user": user, "price": price, "at": (NOON + timedelta(seconds=second)).isoformat()}


def told(t: JobDriver) -> dict[str | None, Any]:
    """The new changes by key: total and number, or None for a deletion; each key once."""
    found = t.changes("out")
    made = {key: row and (row["total"], row["n"]) for key, row in found}
    assert len(made) == len(found), found
    return made


def table(t: JobDriver) -> dict[str | None, Any]:
    """What the new changes come to, key by key."""
    return {key: row and (row["total"], row["n"]) for key, row in t.changes("out")}


def test_each_batch_tells_the_results_that_changed(job_driver: Make) -> None:
    t = job_driver(totals())
    t.send("orders", order("a", 1), order("b", 5), order("a", 2), order(None, 7)).run()
    assert told(t) == {"a": (3, 2), "b": (5, 1), None: (7, 1)}
    t.send("orders", order("a", 10)).run()
    assert told(t) == {"a": (13, 3)}
    counts = t.metrics("totals")
    assert (counts["records_in"], counts["records_out"]) == (5, 4)
    assert t.state("totals").get(user="a") is not None
    t.restore(parallelism=3)
    t.send("orders", order("b", 1), order("c", 0)).run()
    assert told(t) == {"b": (6, 2), "c": (0, 1)}


def test_a_result_that_stays_as_it_was_is_not_told_again(job_driver: Make) -> None:
    @hg.job("highest")
    def highest(job: hg.Job) -> None:
        orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
        best = orders.key_by().aggregate("best", F.max("price").alias("price"))
        best.sink("out", hg.topic("log:out", key="'best'"))

    t = job_driver(highest)
    t.send("orders", order("a", 5)).run()
    t.send("orders", order("b", 4)).run()
    t.send("orders", order("c", 6)).run()
    assert t.changes("out") == [("best", {"price": 5}), ("best", {"price": 6})]


def test_a_key_that_falls_out_of_having_is_deleted(job_driver: Make) -> None:
    t = job_driver(totals(having="total BETWEEN 5 AND 10"))
    t.send("orders", order("a", 1), order("b", 6), order("c", 20)).run()
    assert told(t) == {"b": (6, 1)}
    t.send("orders", order("a", 5), order("b", 5), order("c", -30)).run()
    assert told(t) == {"a": (6, 2), "b": None}
    t.send("orders", order("b", -1), order("c", 0)).run()
    assert told(t) == {"b": (10, 3)}


def test_a_where_deletes_what_it_does_not_let_pass(job_driver: Make) -> None:
    @hg.job("large")
    def large(job: hg.Job) -> None:
        orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
        sums = orders.key_by("user").aggregate("sums", F.sum("price").alias("total"))
        named = sums.select("user AS who", "total * 2 AS twice").where("twice > 10")
        named.sink("out", hg.topic("log:out", key="who"))

    t = job_driver(large)
    t.send("orders", order("a", 6), order("b", 3)).run()
    t.send("orders", order("a", -3)).run()
    found = t.changes("out")
    assert sorted(map(str, found)) == sorted(
        map(str, [("a", {"who": "a", "twice": 12}), ("b", None), ("a", None)])
    )


def test_a_key_is_forgotten_when_it_gets_no_rows_for_so_long(job_driver: Make) -> None:
    t = job_driver(totals(ttl="1 minute"))
    t.send("orders", order("a", 1, 0), order("b", 1, 0)).run()
    assert told(t) == {"a": (1, 1), "b": (1, 1)}
    t.send("orders", order("a", 1, 50)).run()
    t.send("orders", order("c", 1, 60)).run()  # the watermark passes 60 seconds
    assert told(t) == {"a": (2, 2), "c": (1, 1), "b": None}
    # b begins anew; a row that is too old is over at once
    t.send("orders", order("b", 7, 65), order("d", 9, -100)).run()
    assert told(t) == {"b": (7, 1)}
    t.send("orders", order("x", 1, 1000)).run()
    assert told(t) == {"a": None, "b": None, "c": None, "x": (1, 1)}
    assert [r["key"]["user"] for r in t.state("totals").all()] == ["x"]
    assert [r["key"]["user"] for r in t.state("totals", "due").all()] == ["x"]


def test_state_with_a_ttl_is_bounded(job_driver: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    @hg.job("noted")
    def noted(job: hg.Job) -> None:
        topic = hg.topic("log:notes", schema="user STRING, note STRING, at TIMESTAMP")
        notes = job.source("notes", topic, event_time=hg.event_time("at")).key_by("user")
        last = notes.aggregate("last", F.max("note").alias("note"), ttl="1 minute")
        last.sink("out", hg.topic("log:out", key="user"))

    monkeypatch.setattr(log, "MAX_RECORDS", "200")
    t, dice = job_driver(noted), random.Random(5)
    sizes, now = [], 0
    for until in (50, 200):  # in ttls: each has ten keys that come once, and one that always comes
        for minute in range(now, until):
            names = [*(f"{minute}.{n}" for n in range(10)), "always"]
            rows = [{"user": name, "note": dice.randbytes(5000).hex()} for name in names]
            t.send("notes", *[order("", 0, minute * 60) | row for row in rows])
        t.run()
        # the watermark of the last rows is that of the next batch
        t.send("notes", order("always", 0, until * 60)).run()
        now = until
        record = t._run_home.latest_checkpoint()
        assert record is not None
        sizes.append(record.state["last"])
        for store in ("default", "due"):
            assert [r["key"]["user"] for r in t.state("last", store).all()] == ["always"]
    assert [size["rows"] for size in sizes] == [1, 1]
    # RocksDB takes memory for what is not yet in files in pieces of megabytes; 15 MB of notes came
    assert sizes[1]["bytes"] < sizes[0]["bytes"] + (4 << 20), sizes


def test_a_row_without_a_time_is_taken_for_one_of_the_watermarks(job_driver: Make) -> None:
    t = job_driver(totals(ttl="1 minute"))
    timeless = {"user": "a", "price": 1, "at": None}
    t.send("orders", timeless, {**timeless, "user": "b"}).run()  # before there is a watermark
    assert [r["row"]["expires"] for r in t.state("totals").all()] == [None, None]
    t.send("orders", order("x", 1, 0)).run()
    t.send("orders", order("x", 1, 50)).run()
    t.send("orders", {**timeless, "user": "b"}).run()
    assert table(t) == {"a": (1, 1), "b": (2, 2), "x": (2, 2)}
    t.send("orders", order("x", 1, 60)).run()
    t.send("orders", order("x", 1, 110)).run()
    t.send("orders", order("x", 1, 110)).run()
    assert table(t) == {"a": None, "b": None, "x": (5, 5)}


def test_without_event_time_a_key_is_forgotten_by_the_clock(job_driver: Make) -> None:
    t = job_driver(totals(timed=False, ttl="1 hour"))
    t.send("orders", order("a", 1), order("b", 1)).run()
    t.advance_processing_time("30 minutes")
    t.changes("out")
    t.send("orders", order("a", 1)).run()
    assert told(t) == {"a": (2, 2)}
    t.advance_processing_time("30 minutes")
    t.send("orders", order("c", 1)).run()
    assert told(t) == {"b": None, "c": (1, 1)}
    t.advance_processing_time("30 minutes")
    t.send("orders", order("a", 5)).run()
    assert told(t) == {"a": (5, 1)}


def test_changes_are_told_every_so_often(job_driver: Make) -> None:
    t = job_driver(totals(emit=hg.every("1 minute")))
    t.send("orders", order("a", 1, 61)).run()
    assert told(t) == {"a": (1, 1)}
    t.send("orders", order("a", 1, 70), order("b", 1, 71)).run()
    t.send("orders", order("a", 1, 119)).run()
    assert told(t) == {}
    t.send("orders", order("c", 1, 120)).run()
    assert told(t) == {"a": (3, 3), "b": (1, 1), "c": (1, 1)}
    t.send("orders", order("d", 1, 130)).run(drain=True)
    assert told(t) == {"d": (1, 1)}
    assert t.state("totals", "changed").all() == []


def test_without_event_time_changes_are_told_by_the_clock(job_driver: Make) -> None:
    t = job_driver(totals(timed=False, emit=hg.every("1 hour")))
    t.send("orders", order("a", 1)).run()
    assert told(t) == {}
    t.advance_processing_time("1 hour")
    t.send("orders", order("a", 1)).run()
    assert told(t) == {"a": (2, 2)}


def test_another_ttl_emit_or_having_may_be_asked_for(job_driver: Make) -> None:
    t = job_driver(totals())
    t.send("orders", order("a", 1, 0)).run()
    t.send("orders", order("b", 1, 100)).run()
    t.send("orders", order("b", 0, 100)).run()
    t.changes("out")
    t.restore(job=totals(ttl="1 minute", emit=hg.every("1 hour")), parallelism=3)
    t.send("orders", order("a", 1, 100)).run()
    assert told(t) == {}
    t.restore(job=totals(ttl="2 minutes", emit=hg.every("10 seconds"), having="n > 1"))
    t.send("orders", order("a", 1, 150), order("c", 1, 150)).run()
    t.send("orders", order("c", 1, 161)).run()
    # b got no rows since: the ttl that it was kept with holds
    assert told(t) == {"a": (3, 3), "b": None, "c": (2, 2)}
    t.restore(job=totals(timed=False, ttl="2 minutes", emit=hg.every("10 seconds")))
    with pytest.raises(hg.RefusedError, match="its ttl went by event time and goes by processing"):
        t.run()
    t.restore(job=totals())
    with pytest.raises(hg.RefusedError, match="needs --allow-dropped-state"):
        t.run()


@pytest.mark.parametrize(
    "options",
    [
        # in part: brokers/test_changes.py, where such a job dies at two points
        pytest.param({}, marks=pytest.mark.long),
        {"having": "total % 2 = 0", "ttl": "40 seconds", "emit": hg.every("9 seconds")},
    ],
)
def test_aggregates_are_exact_wherever_the_driver_dies(spark: object, options: Any) -> None:
    script = [("orders", order("abcde"[n * n % 5], n, n * 7)) for n in range(24)]
    assert_crash_safe(totals(**options), script)


@pytest.mark.parametrize(
    ("follow", "why"),
    [
        (lambda s: s.key_by("user").aggregate("a", F.count("*").alias("c")), "an aggregate"),
        (lambda s: s.key_by("user").dedupe("d"), "a dedupe step"),
        (lambda s: s.key_by("user").window("w", hg.tumbling("1 s"), F.max("n").alias("m")), "this"),
        (lambda s: s.union(s), "a union step"),
        (lambda s: s.select("n"), "user would be lost"),
        (lambda s: s.with_columns(user="upper(user)"), "user would be lost"),
        (lambda s: s.transform("t", lambda df: df.where("n > 1")), "user would be lost"),
        (lambda s: s.sink("o", hg.topic("log:o")), "the sink's key must be made of user"),
        (lambda s: s.sink("o", hg.topic("log:o", key="n")), "the sink's key must be made of user"),
        (lambda s: s.sink("o", hg.ConsoleSink()), "cannot delete or replace a row"),
    ],
)
def test_what_would_take_an_update_for_one_more_row_is_refused(follow: Any, why: str) -> None:
    @hg.job("wrong")
    def wrong(job: hg.Job) -> None:
        orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
        follow(orders.key_by("user").aggregate("totals", F.count("*").alias("n")))

    with pytest.raises(hg.GraphError, match=why):
        wrong.describe()


@pytest.mark.parametrize("aggregate", [F.first, F.last, F.collect_list])
def test_what_goes_by_the_order_of_rows_is_refused_before_a_sink(aggregate: Any) -> None:
    @hg.job("wrong")
    def wrong(job: hg.Job) -> None:
        orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
        made = orders.key_by("user").aggregate("totals", aggregate("price").alias("x"))
        made.sink("out", hg.topic("log:out", key="user"))

    with pytest.raises(hg.GraphError, match="gives another value when a batch is replayed"):
        wrong.describe()


def test_changes_are_the_table_of_a_lookup_in_the_same_batch(job_driver: Make) -> None:
    @hg.job("ranked")
    def shares(job: hg.Job) -> None:
        orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
        sums = orders.key_by("user").aggregate(
            "sums", F.sum("price").alias("total"), having="total < 100"
        )
        found = orders.lookup("of", sums.as_table(), on="user", take=["total"], missing="side")
        found.sink("out", hg.topic("log:out"))
        found.missing.sink("none", hg.topic("log:none"))
        sums.sink("sums_out", hg.topic("log:sums", key="user"))

    t = job_driver(shares)
    t.send("orders", order("a", 1), order("a", 2), order("b", 100)).run()
    assert sorted((r["user"], r["price"], r["total"]) for r in t.rows("out")) == [
        ("a", 1, 3),
        ("a", 2, 3),
    ]
    assert [r["user"] for r in t.rows("none")] == ["b"]
    t.send("orders", order("a", 99), order("b", -10)).run()
    assert [(r["user"], r["total"]) for r in t.rows("out")] == [("b", 90)]
    assert [r["user"] for r in t.rows("none")] == ["a"]
    assert {key: row and row["total"] for key, row in t.changes("sums_out")} == {"a": None, "b": 90}
