"""The row cache: bounded, right with two queries in a session, and gone when a query is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
LIMIT = "spark.headgate.cache.bytes"


@hg.job("cached")
def cached(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    orders = job.source("orders", hg.topic("log:orders", schema="id BIGINT, user_id BIGINT"))
    found = orders.lookup("users_lookup", users, on="user_id", take=["name"])
    found.sink("out", hg.topic("log:out"))


@pytest.fixture
def caches(spark: SparkSession) -> Any:
    return spark._jvm.org.apache.spark.sql.headgate.store.RowCaches  # type: ignore[union-attr]


@pytest.fixture
def limit(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    yield lambda value: spark.conf.set(LIMIT, value)
    spark.conf.unset(LIMIT)


def names(t: JobDriver) -> dict[int, Any]:
    return {r["id"]: r["name"] for r in t.rows("out")}


@pytest.mark.parametrize("size", ["0", "40k", "100m"])
def test_rows_are_right_whatever_the_cache_holds(
    job_driver: Make, limit: Callable[[str], None], caches: Any, size: str
) -> None:
    limit(size)
    others = caches.bytes()  # of queries that other tests left
    t = job_driver(cached)
    keys = range(0, 9000, 3)

    def name(version: str, key: int) -> str:
        return f"{version}{key}" * (1 + key % 40)  # a row may outgrow its old place

    truth = {k: name("a", k) for k in keys}
    t.send("users", *[{"id": k, "name": v} for k, v in truth.items()]).run()
    for version, some in (("bb", keys[1::2]), ("c", keys[::5])):
        truth |= {k: name(version, k) for k in some}
        t.send("users", *[{"id": k, "name": truth[k]} for k in some])
        t.send("orders", *[{"id": k, "user_id": k} for k in range(9000)]).run()
        assert names(t) == {k: truth.get(k) for k in range(9000)}
    if size == "40k":
        assert caches.bytes() - others <= 2 * 40 * 1024


def test_two_queries_of_one_session_do_not_share_rows(job_driver: Make) -> None:
    one, two = job_driver(cached), job_driver(cached)
    for number in range(2):
        for t, who in ((one, "one"), (two, "two")):
            t.send("users", {"id": 1, "name": f"{who} {number}"})
            t.send("orders", {"id": number, "user_id": 1}).run()
    assert names(one) == {0: "one 0", 1: "one 1"}
    assert names(two) == {0: "two 0", 1: "two 1"}


def test_the_caches_of_stores_that_are_unloaded_are_dropped(
    job_driver: Make, spark: SparkSession, caches: Any
) -> None:
    t = job_driver(cached)
    t.send("users", {"id": 1, "name": "Ann"})
    t.send("orders", {"id": 1, "user_id": 1}).run()
    assert caches.count() > 0
    states = spark._jvm.org.apache.spark.sql.execution.streaming.state  # type: ignore[union-attr]
    getattr(getattr(states, "StateStore$"), "MODULE$").unloadAll()
    caches.sweep()
    assert caches.count() == 0


def test_a_failed_batch_leaves_no_row_in_the_cache(job_driver: Make) -> None:
    t = job_driver(cached)
    t.send("users", {"id": 1, "name": "old"}).run()
    t.send("users", {"id": 1, "name": "new"}).crash(at="before_sink").restore()
    t.send("orders", {"id": 1, "user_id": 1}).run()
    assert names(t) == {1: "new"}
