"""The first rows of each key and window, through the public API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import RefusedError
from headgate.testing import JobDriver, assert_crash_safe

Make = Callable[..., JobDriver]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
BID = "auction STRING, id BIGINT, price BIGINT, at TIMESTAMP"
MINUTE = hg.tumbling("1 minute")
Row = tuple[str | None, int, int, int]


def best(
    n: int = 2, within: hg.Window = MINUTE, by: Any = None, columns: tuple[str, ...] = ()
) -> hg.JobDef:
    """The highest bids of each auction and window, and the bids that came too late."""

    @hg.job("best")
    def define(job: hg.Job) -> None:
        bids = job.source(
            "bids", hg.topic("log:bids", schema=BID), event_time=hg.event_time("at")
        ).select("*", *columns)
        order = F.desc("price") if by is None else by
        first = bids.key_by("auction").top("top", n, by=order, within=within)
        first.sink("out", hg.topic("log:out"))
        first.late.sink("late", hg.topic("log:late"))

    return define


def bid(auction: str | None, id: int, second: int | None, price: int = 10) -> dict[str, Any]:
    at = None if second is None else (NOON + timedelta(seconds=second)).isoformat()
    return {"auction": auction, "id": id, "price": price, "at": at}


def told(t: JobDriver) -> list[Row]:
    """Auction, end of the window in seconds, rank and id."""
    rows = [
        (row["auction"], round((row["window_end"] - NOON).total_seconds()), row["rank"], row["id"])
        for row in t.rows("out")
    ]
    return sorted(rows, key=lambda row: (row[0] is None, row))


def late(t: JobDriver) -> list[int]:
    return sorted(row["id"] for row in t.rows("late"))


def test_the_first_rows_come_once_when_their_window_closes(job_driver: Make) -> None:
    t = job_driver(best())
    t.send("bids", bid("a", 1, 10, 5), bid("a", 2, 20, 9), bid("b", 3, 59, 1)).run()
    assert told(t) == []
    t.send("bids", bid("a", 4, 30, 7), bid("a", 5, 65, 1)).run()
    assert told(t) == [("a", 60, 1, 2), ("a", 60, 2, 4), ("b", 60, 1, 3)]
    t.send("bids", bid("a", 6, 30, 99), bid("a", 7, None)).run()
    assert (told(t), late(t)) == ([], [6, 7])
    t.run(drain=True)
    assert told(t) == [("a", 120, 1, 5)]
    counts = {"records_in": 7, "records_out": 4, "records_out_late": 2}
    assert t.metrics("top") == counts
    assert t.state("top").all() == []


def test_rows_that_are_alike_come_by_their_place(job_driver: Make) -> None:
    t = job_driver(best(3, by=["price % 10", F.desc(F.length("auction"))]), parallelism=1)
    t.send("bids", bid("a", 1, 0, 11), bid("a", 2, 0, 1), bid("a", 3, 0, 10)).run()
    t.send("bids", bid("a", 4, 0, 21), bid("a", 5, 0, 0)).run(drain=True)
    assert [row[3] for row in told(t)] == [3, 5, 1]


def test_a_row_is_in_every_window_that_it_falls_into(job_driver: Make) -> None:
    t = job_driver(best(1, hg.sliding("60 s", every="30 s")))
    t.send("bids", bid("a", 1, 10, 5), bid(None, 2, 40, 3)).run(drain=True)
    assert told(t) == [
        ("a", 30, 1, 1), ("a", 60, 1, 1), (None, 60, 1, 2), (None, 90, 1, 2),
    ]  # fmt: skip
    assert t.metrics("top")["records_in"] == 2


def test_without_a_key_there_is_one_list_a_window_and_windows_follow(job_driver: Make) -> None:
    @hg.job("hot")
    def hot(job: hg.Job) -> None:
        topic = hg.topic("log:bids", schema=BID)
        bids = job.source("bids", topic, event_time=hg.event_time("at"))
        counts = bids.key_by("auction").window("counts", MINUTE, F.count("*").alias("n"))
        first = counts.drop("window_start", "window_end").key_by().top(
            "hot", 2, by=[F.desc("n"), "auction"], within=MINUTE
        )  # fmt: skip
        first.sink("out", hg.topic("log:out"))
        two = first.key_by().window("pairs", hg.tumbling("2 minutes"), F.sum("n").alias("n"))
        two.sink("two", hg.topic("log:two"))

    t = job_driver(hot)
    t.send("bids", *[bid(a, n, n) for n, a in enumerate("abbccc")])
    t.send("bids", *[bid(a, n, 60 + n) for n, a in enumerate("abb")]).run(drain=True)
    assert [(r["rank"], r["auction"], r["n"]) for r in t.rows("out")] == [
        (1, "c", 3), (2, "b", 2), (1, "b", 2), (2, "a", 1),
    ]  # fmt: skip
    assert [row["n"] for row in t.rows("two")] == [8]


def test_state_is_read_restored_at_another_parallelism_and_compared(job_driver: Make) -> None:
    t = job_driver(best(), parallelism=2)
    t.send("bids", *[bid(a, n, n, n) for n, a in enumerate("abcabcabc")]).run()
    point = t.savepoint("open")
    kept = t.state("top").get(auction="b")
    assert [row["id"] for row in kept["rows"]] == [7, 4]
    assert kept["window_end"] == (NOON + timedelta(minutes=1)).replace(tzinfo=None)
    t.restore(point, parallelism=3)
    t.send("bids", bid("b", 9, 30, 5), bid("c", 10, 30, 0)).run(drain=True)
    assert told(t) == [
        ("a", 60, 1, 6), ("a", 60, 2, 3), ("b", 60, 1, 7), ("b", 60, 2, 9),
        ("c", 60, 1, 8), ("c", 60, 2, 5),
    ]  # fmt: skip


def test_state_goes_on_only_where_it_says_what_the_new_job_needs(job_driver: Make) -> None:
    t = job_driver(best(2))
    t.send("bids", *[bid("a", n, n, n) for n in range(4)]).run()
    point = t.savepoint("open")
    for other, why in (
        (best(within=hg.tumbling("2 minutes")), "its windows are others"),
        (best(by="price"), "its order was"),
        (best(columns=("price + 1 AS more",)), "top"),
    ):
        with pytest.raises(RefusedError, match=why):
            t.restore(point, job=other).run()
    t.restore(point, job=best(1)).run(drain=True)
    assert told(t) == [("a", 60, 1, 3)]
    t.restore(point, job=best(3)).send("bids", bid("a", 9, 9, 1)).run(drain=True)
    assert [row[3] for row in told(t)] == [3, 2, 9]


@pytest.mark.slow
def test_it_is_exact_wherever_the_driver_dies(spark: object) -> None:
    script = [("bids", bid("ab"[n % 2], n, n * n % 240, n * 7 % 10)) for n in range(24)]
    assert_crash_safe(best(within=hg.sliding("60 s", every="30 s")), script)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda s: s.top("t", 1, by="price", within=hg.session("1 s")), "within must be"),
        (
            lambda s: s.top("t", 1, by="price", within=hg.tumbling("1 s", clock="processing")),
            "within must be",
        ),
        (
            lambda s: s.aggregate("a", F.count("*").alias("n")).key_by("auction").top(
                "t", 1, by="n", within=MINUTE
            ),
            "are changes",
        ),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_refused(make: Any, why: str) -> None:
    @hg.job("wrong")
    def wrong(job: hg.Job) -> None:
        topic = hg.topic("log:bids", schema=BID)
        make(job.source("bids", topic, event_time=hg.event_time("at")).key_by("auction"))

    with pytest.raises(hg.GraphError, match=why):
        wrong.describe()
