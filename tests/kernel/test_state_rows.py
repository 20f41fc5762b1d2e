"""A step's state read as rows, from the folder of a query that ran or that runs."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import headgate as hg
from headgate import jvm
from headgate.compile.sinks import Writer
from tests.kernel.state_support import OPERATOR, STEP, Query, files_below, plain, users_job

SPARSE = [k * k * 7 + 3 for k in range(300)]


def user(id: int, name: str) -> dict[str, Any]:
    return {"id": id, "name": name}


@pytest.fixture
def waiting(spark: SparkSession, tmp_path: Path) -> Query:
    """A lookup with 300 users, and two orders for each of 300 users that are not there."""
    query = Query(spark, users_job(missing=hg.Wait("1 hour")), tmp_path, tmp_path / "spark", 3)
    query.send("users", *[user(k, f"u{k}") for k in SPARSE]).run()
    orders = [{"id": 2 * k + i, "user_id": k + 1} for k in SPARSE for i in range(2)]
    return query.send("orders", *orders).run()


def get(query: Query, store: str, key: DataFrame) -> list[Any]:
    number = [layout["name"] for layout in query.layouts].index(store)
    return jvm.state_get(
        query.spark, folder=str(query.folder), operator_id=OPERATOR, layout=query.layouts[number],
        version=query.batch + 1, ids=[of[number] for of in query.ids()], key=key,
    ).collect()  # fmt: skip


def test_every_store_of_a_lookup_that_waits(waiting: Query) -> None:
    assert waiting.users() == {k: user(k, f"u{k}") for k in SPARSE}
    held = waiting.state("waiting")
    assert {(r.key["key0"], r.value["user_id"], r.value["id"]) for r in held} == {
        (k + 1, k + 1, 2 * k + i) for k in SPARSE for i in range(2)
    }
    timed = waiting.state("deadlines")
    assert {tuple(r.key)[2:] + tuple(r.key)[:2] for r in timed} == {tuple(r.key) for r in held}
    assert len(held) == len(timed) == 2 * len(SPARSE)


def test_layouts_are_those_that_spark_wrote_down(waiting: Query) -> None:
    layouts = {layout["name"]: layout for layout in waiting.layouts}
    assert {n: (e["encoder"], e["columns"], e["partition_by"]) for n, e in layouts.items()} == {
        "default": ("plain", None, [0]),
        "waiting": ("prefix", 1, [0]),
        "deadlines": ("range", [0], [2]),
    }
    for name, layout in layouts.items():
        store = "" if name == "default" else name
        written = waiting.folder / "state" / str(OPERATOR) / "0" / store / "_metadata" / "schema"
        text = written.read_bytes().decode("utf-8", "replace")
        text = text.replace('"nullable":false', '"nullable":true')
        for part in ("key", "value"):
            assert json.dumps(layout[part], separators=(",", ":")) in text


def test_an_earlier_version_and_some_partitions(waiting: Query) -> None:
    waiting.send("users", *[user(k, "changed") for k in SPARSE]).run()
    assert waiting.users(0) == {k: user(k, f"u{k}") for k in SPARSE}
    layout, version = waiting.layouts[0], waiting.batch + 1
    ids = [of[0] for of in waiting.ids()]
    rows = jvm.state_rows(
        waiting.spark, folder=str(waiting.folder), operator_id=OPERATOR, layout=layout,
        version=version, ids=ids, partitions=[2, 0],
    )  # fmt: skip
    assert {r.partition for r in rows.collect()} == {0, 2}
    assert rows.where("key.key0 = 3").count() + rows.limit(5).count() >= 5


def test_a_running_query_is_read_and_nothing_written(spark: SparkSession, tmp_path: Path) -> None:
    query = Query(spark, users_job(), tmp_path, tmp_path / "spark", 2)
    query.send("users", *[user(k, f"u{k}") for k in SPARSE]).run()
    before = files_below(query.folder)
    assert query.users() == {k: user(k, f"u{k}") for k in SPARSE}
    assert files_below(query.folder) == before

    compiled = query._compile()
    running = compiled.start(
        writer=Writer("state", "spark", "", str(query.folder / "journal")),
        checkpoint=str(query.folder), bounded=False, every=timedelta(seconds=0),
    )  # fmt: skip
    try:
        for round in range(5):
            query.send("users", *[user(k, f"u{k} {round}") for k in SPARSE])
            running.processAllAvailable()
            at = query.batch
            assert query.users(at) == {k: user(k, f"u{k} {round}") for k in SPARSE}
    finally:
        running.stop()


def test_one_key(waiting: Query, spark: SparkSession) -> None:
    for k in SPARSE[::60]:
        key = spark.sql(f"SELECT CAST({k} AS BIGINT) AS id")
        other = spark.sql(f"SELECT CAST({k + 1} AS BIGINT) AS id")
        ((found),) = get(waiting, "default", key)
        assert (found.key["key0"], plain(found.value["row"])) == (k, user(k, f"u{k}"))
        assert get(waiting, "default", other) == []
        assert get(waiting, "waiting", key) == []
        held = get(waiting, "waiting", other)
        assert {r.value["id"] for r in held} == {2 * k, 2 * k + 1}
        timed = get(waiting, "deadlines", other)
        assert {r.key["number"] for r in timed} == {r.key["number"] for r in held}


def test_a_key_of_other_columns_is_refused(waiting: Query, spark: SparkSession) -> None:
    with pytest.raises(Exception, match=r"the key is \(bigint\), not \(int\)"):
        get(waiting, "default", spark.sql("SELECT 1 AS id"))


def test_layouts_by_step(waiting: Query) -> None:
    assert list(jvm.state_layout(waiting.compiled.frame)) == [STEP]
