"""Tables get each row once: after a crash at any point, a restore, with homes that are older."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import RefusedError
from tests.jdbc.server import FEW, Server
from tests.jdbc.shop import POINTS, Shop, orders


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, server: Server) -> Shop:
    return Shop(spark, tmp_path, server)


def counted(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in rows)


def newest(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The last order of each user, by user."""
    return [row for _, row in sorted({row["user"]: row for row in rows}.items())]


def test_no_crash_writes_a_row_twice_or_not_at_all(shop: Shop) -> None:
    cheap, dear = shop.table(), shop.table()
    last = shop.table('"user" varchar(20) PRIMARY KEY, id bigint, price bigint')

    def build(rows: hg.SourceStream) -> None:
        rows.where("price < 0").sink("cheap", shop.sink(cheap))
        # the end of this option's name is that of another one, which is not in the address
        url = f"{shop.server.url}?sslpassword=not-asked-for"
        rows.where("price >= 0").sink("dear", shop.sink(dear, url=url))
        rows.sink("last", shop.sink(last, mode="upsert", key=["user"]))

    job, sent = shop.job(build), list[dict[str, Any]]()
    for number, point in enumerate((None, *POINTS)):
        came = orders(range(number * 40, number * 40 + 40))
        shop.send(came)
        sent += came
        if point is not None:
            shop.crash(job, point)
        shop.go(job)
        for table, chosen in ((cheap, [r for r in sent if r["price"] < 0]),
                              (dear, [r for r in sent if r["price"] >= 0])):  # fmt: skip
            assert counted(shop.server.records(table)) == counted(chosen), point
        assert shop.server.records(last, ['"user"']) == newest(sent), point
    notes = shop.server.rows(
        'SELECT sink, sum("rows") FROM headgate_batches'
        f" WHERE job = '{shop.job_name}' AND batch = 5 GROUP BY sink ORDER BY sink"
    )
    cheap_ones = sum(row["price"] < 0 for row in sent[-40:])
    assert notes == [("cheap", str(cheap_ones)), ("dear", str(40 - cheap_ones)), ("last", "40")]


def test_changes_are_upserts_and_deletions(shop: Shop) -> None:
    totals = shop.table('"user" varchar(20) PRIMARY KEY, total bigint, prices bigint NOT NULL')

    def build(rows: hg.SourceStream) -> None:
        sums = rows.key_by("user").aggregate(
            "totals", F.sum("price").alias("total"), F.count_distinct("price").alias("prices"),
            having="total BETWEEN 5 AND 20",
        )  # fmt: skip
        sums.sink("out", shop.sink(totals, mode="upsert", key=["user"]))

    job, dice, gone = shop.job(build), random.Random(3), 0
    prices: dict[str, list[int]] = {}
    before: set[str] = set()
    for point in (None, "in_transaction", "after_transaction", "after_sink"):
        came: list[dict[str, Any]] = [
            {"id": n, "user": f"u{dice.randrange(70)}", "price": dice.randint(-9, 15)}
            for n in range(120)
        ]
        shop.send(came)
        for row in came:
            prices.setdefault(row["user"], []).append(row["price"])
        if point is not None:
            shop.crash(job, point)
        shop.go(job)
        truth: list[dict[str, Any]] = [
            {"user": user, "total": sum(all), "prices": len(set(all))}
            for user, all in sorted(prices.items())
            if 5 <= sum(all) <= 20
        ]
        assert shop.server.records(totals, ['"user"']) == truth, point
        now = {row["user"] for row in truth}
        gone += len(before - now)
        before = now
    assert gone > 10, "rows were deleted"


@pytest.mark.parametrize("server", FEW, indirect=True)
def test_a_restore_appends_again_and_upserts_the_same(shop: Shop) -> None:
    every = shop.table()
    last = shop.table('"user" varchar(20) PRIMARY KEY, id bigint, price bigint')
    job = shop.to(shop.sink(every), shop.sink(last, mode="upsert", key=["user"]))
    first, later = orders(range(0, 30)), orders(range(30, 60))
    for came in (first, later):
        shop.send(came)
        shop.go(job)
    wanted = shop.server.records(last, ['"user"'])
    shop.go(job, restore="r1/ck:0")
    assert counted(shop.server.records(every)) == counted([*first, *later, *later])
    assert shop.server.records(last, ['"user"']) == wanted == newest([*first, *later])


@pytest.mark.parametrize("server", FEW, indirect=True)
def test_a_home_that_is_older_than_its_table_is_refused(shop: Shop) -> None:
    table = shop.table()
    job = shop.to(shop.sink(table))
    shop.send(orders(range(0, 20)))
    shop.go(job)
    shutil.copytree(shop.home, shop.folder / "backup", symlinks=True)
    shop.send(orders(range(20, 40)))
    shop.go(job)
    shutil.rmtree(shop.home)
    (shop.folder / "backup").rename(shop.home)
    shop.send(orders(range(40, 60)))
    with pytest.raises(RefusedError, match="batch 1 of run r1, but the home is at ck:0") as refused:
        shop.go(job)
    assert "--accept-sink-position" in str(refused.value)
    assert len(shop.server.records(table)) == 40, "nothing was written"
    shop.go(job, accept_sink_position=True)
    assert counted(shop.server.records(table)) == counted(orders(range(60)))


@pytest.mark.parametrize("server", FEW, indirect=True)
def test_another_home_is_refused_until_it_takes_over(shop: Shop) -> None:
    table = shop.table()
    job = shop.to(shop.sink(table))
    shop.send(orders(range(20)))
    shop.go(job)
    first, shop.home = shop.home, shop.folder / "second"
    with pytest.raises(RefusedError, match="of another home") as refused:
        shop.go(job)
    assert str(first) in str(refused.value)
    assert counted(shop.server.records(table)) == counted(orders(range(20)))
    shop.go(job, take_over=True)
    assert counted(shop.server.records(table)) == counted(orders([*range(20)] * 2))
    shop.home = first
    with pytest.raises(RefusedError, match="--take-over"):
        shop.go(job)
