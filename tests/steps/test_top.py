"""Top-N through the public API, against plain Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.testing import JobDriver, assert_crash_safe

Make = Callable[..., JobDriver]
BID = "auction BIGINT, id BIGINT, price BIGINT"


def best(n: int = 3) -> hg.JobDef:
    """The best bids of each auction, and the auctions with the highest sums."""

    @hg.job("best")
    def define(job: hg.Job) -> None:
        bids = job.source("bids", hg.topic("log:bids", schema=BID))
        top = bids.key_by("auction").top("top", n, by=F.desc("price"))
        top.sink("out", hg.topic("log:out", key="to_json(struct(auction, rank))"))
        sums = bids.key_by("auction").aggregate(
            "sums", F.sum("price").alias("total"), having="total >= 0"
        )
        first = sums.key_by().top("first", n, by=[F.desc("total"), "auction"])
        first.sink("sums_out", hg.topic("log:sums", key="rank"))

    return define


def test_when_a_row_goes_the_next_one_moves_up(job_driver: Make) -> None:
    t = job_driver(best(2))
    t.send("bids", *[{"auction": a, "id": a, "price": a} for a in (1, 2, 3)]).run()
    assert [(k, r and r["total"]) for k, r in t.changes("sums_out")] == [("1", 3), ("2", 2)]
    t.send("bids", {"auction": 3, "id": 4, "price": -9}).run()
    assert [(k, r and r["total"]) for k, r in t.changes("sums_out")] == [("1", 2), ("2", 1)]
    t.send("bids", {"auction": 2, "id": 5, "price": -9}).run()
    assert [(k, r and r["total"]) for k, r in t.changes("sums_out")] == [("1", 1), ("2", None)]


def test_top_is_exact_wherever_the_driver_dies(spark: object) -> None:
    script = [("bids", {"auction": n * n % 5, "id": n, "price": n * 7 % 10}) for n in range(24)]
    assert_crash_safe(best(2), script)


def test_a_top_step_needs_columns_as_its_key() -> None:
    def made(make: Any) -> hg.JobDef:
        @hg.job("wrong")
        def define(job: hg.Job) -> None:
            make(job.source("bids", hg.topic("log:bids", schema=BID)))

        return define

    with pytest.raises(hg.GraphError, match="the key of a top step must be columns"):
        made(lambda s: s.key_by("auction % 2 AS part").top("t", 1, by="price")).describe()
    with pytest.raises(hg.GraphError, match="n must be a number of rows greater than zero"):
        made(lambda s: s.key_by("auction").top("t", 0, by="price")).describe()
