"""Graphs of any shape: a stream feeds many steps and sinks, and each stateful step runs once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import headgate as hg
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
USER = "id BIGINT, name STRING"
ITEM = "id BIGINT, title STRING"
ORDER = "id BIGINT, user_id BIGINT, item_id BIGINT, gift_id BIGINT, price DOUBLE"


def by_id(rows: list[dict]) -> list[dict]:
    return sorted(rows, key=lambda r: r["id"])


def send_orders(t: JobDriver) -> None:
    t.send("users", *[{"id": k, "name": f"user {k}"} for k in range(0, 40, 2)])
    t.send("items", *[{"id": k, "title": f"item {k}"} for k in range(0, 30, 3)])
    t.send("orders", *[order(k) for k in range(100)], partition=1)


def order(k: int) -> dict:
    return {"id": k, "user_id": k % 50, "item_id": k % 31, "gift_id": k % 7, "price": k * 1.0}


def known_user(k: int) -> bool:
    return k % 50 < 40 and k % 50 % 2 == 0


def known_item(k: int) -> bool:
    return k < 30 and k % 3 == 0


@hg.job("fan")
def fan(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema=USER), key="id")
    items = job.table("items", hg.topic("log:items", schema=ITEM), key="id")
    orders = job.source("orders", hg.topic("log:orders", schema=ORDER), malformed="side")
    found = orders.lookup("users_lookup", users, on="user_id", into="user", missing="side")
    item = found.lookup("items_lookup", items, on="item_id", into="item")
    gift = found.lookup("gifts_lookup", items, on="gift_id", into="gift", missing="side")
    item.select("id", "user.name", "item.title").sink("items_out", hg.topic("log:a"))
    gift.select("id", "gift.title").sink("gifts_out", hg.topic("log:b"))
    gift.missing.select("id").sink("gifts_missing", hg.topic("log:c"))
    found.select("id", "user").sink("all", hg.topic("log:files"))
    found.where("price >= 50").select("id", "price").sink("dear", hg.topic("log:dear"))
    found.missing.sink("no_user", hg.topic("log:no_user"))
    orders.malformed.sink("malformed", hg.topic("log:malformed"))


def test_one_lookup_feeds_two_lookups_and_sinks(job_driver: Make) -> None:
    t = job_driver(fan)
    send_orders(t)
    t.send("orders", "not json").run()
    known = [k for k in range(100) if known_user(k)]
    assert by_id(t.rows("items_out")) == [
        {
            "id": k,
            "name": f"user {k % 50}",
            "title": f"item {k % 31}" if known_item(k % 31) else None,
        }
        for k in known
    ]
    assert by_id(t.rows("gifts_out")) == [
        {"id": k, "title": f"item {k % 7}"} for k in known if known_item(k % 7)
    ]
    assert by_id(t.rows("gifts_missing")) == [{"id": k} for k in known if not known_item(k % 7)]
    assert [r["id"] for r in by_id(t.rows("all"))] == known
    assert [r["id"] for r in by_id(t.rows("dear"))] == [k for k in known if k >= 50]
    assert by_id(t.rows("no_user")) == [order(k) for k in range(100) if not known_user(k)]
    assert [r["value"] for r in t.rows("malformed")] == ["not json"]
    assert t.metrics("orders") == {"records_out": 100, "records_out_malformed": 1}
    assert t.metrics("users_lookup") == {
        "records_in": 120,
        "records_out": len(known),
        "records_out_missing": 100 - len(known),
    }
    assert t.metrics("items_lookup")["records_in"] == len(known) + 10
    assert t.metrics("gifts_lookup")["records_in"] == len(known) + 10
    assert t.metrics("items")["records_out"] == 10


def test_a_second_batch_and_a_crash_in_a_fan(job_driver: Make) -> None:
    t = job_driver(fan)
    send_orders(t)
    t.crash(at="before_sink").restore().run()
    send_orders(t)
    t.crash(at="after_sink").restore().run()
    known = [k for k in range(100) if known_user(k)]
    assert [r["id"] for r in by_id(t.rows("items_out"))] == sorted(known * 2)
    assert [r["id"] for r in by_id(t.rows("all"))] == sorted(known * 2)
    assert len(t.rows("no_user")) == 2 * (100 - len(known))
    assert t.metrics("users_lookup")["records_in"] == 240


def test_files_sink_and_filter_with_its_own_sink(spark, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    from headgate.connectors.log.files import Record, TopicFiles
    from headgate.runtime.run import run

    for name in ("users", "orders"):
        TopicFiles(tmp_path / name).create(2)
    TopicFiles(tmp_path / "users").append([Record('{"id":1,"name":"Ann"}', "1")])
    rows = [{"id": k, "user_id": k % 3, "price": k * 1.0} for k in range(30)]
    lines = [Record(json.dumps(row), None) for row in rows]
    TopicFiles(tmp_path / "orders").append(lines)

    @hg.job("files")
    def files(job: hg.Job) -> None:
        users = job.table("users", hg.topic(f"log:{tmp_path}/users", schema=USER), key="id")
        orders = job.source("orders", hg.topic(f"log:{tmp_path}/orders", schema=ORDER))
        found = orders.lookup("users_lookup", users, on="user_id", into="user")
        found.sink("all", hg.FilesSink(str(tmp_path / "all")))
        found.where("price > 20").select("id").sink(
            "dear", hg.FilesSink(str(tmp_path / "dear"), "json")
        )

    outcome = run(files, home=str(tmp_path / "home"), bounded=True, spark=spark, parallelism=2)
    assert outcome.error is None
    rows = spark.read.parquet(str(tmp_path / "all")).select("id", "user.name").collect()
    assert sorted((r.id, r.name) for r in rows) == [
        (k, "Ann" if k % 3 == 1 else None) for k in range(30)
    ]
    assert sorted(r.id for r in spark.read.json(str(tmp_path / "dear")).collect()) == list(
        range(21, 30)
    )


def test_transforms_unions_and_side_streams(job_driver: Make) -> None:
    def clean(df: DataFrame) -> DataFrame:
        return df.where("price IS NOT NULL").withColumn("price", F.round("price", 1))

    @F.pandas_udf("double")
    def double(column: pd.Series) -> pd.Series:
        return column * 2

    @hg.job("shapes")
    def shapes(job: hg.Job) -> None:
        items = job.table("items", hg.topic("log:items", schema=ITEM), key="id")
        web = job.source("web", hg.topic("log:web", schema="id BIGINT, price DOUBLE"))
        shop = job.source("shop", hg.topic("log:shop", schema="price DOUBLE, id BIGINT"))
        both = web.transform("clean", clean).union(shop)
        cheap, dear = both.where("price < 10"), both.where("price >= 10")
        again = cheap.union(dear).with_columns(key="id % 5")
        found = again.lookup("items_lookup", items, on="key", take=["title"], missing="side")
        twice = found.transform("twice", lambda df: df.withColumn("price", double("price")))
        twice.drop("key").sink("out", hg.topic("log:out"))
        found.missing.union(found.drop("title")).select("id").sink("every", hg.topic("log:every"))
        both.select("id").sink("seen", hg.topic("log:seen"))

    t = job_driver(shapes)
    t.send("items", {"id": 0, "title": "zero"}, {"id": 1, "title": "one"})
    t.send("web", *[{"id": k, "price": k + 0.04} for k in range(20)], {"id": 99, "price": None})
    t.send("shop", *[{"id": 100 + k, "price": 5.0} for k in range(5)]).run()
    ids = [*range(20), *range(100, 105)]
    titles = {0: "zero", 1: "one"}
    assert by_id(t.rows("out")) == [
        {"id": k, "price": (5.0 if k >= 100 else float(k)) * 2, "title": titles[k % 5]}
        for k in ids
        if k % 5 in titles
    ]
    assert [r["id"] for r in by_id(t.rows("every"))] == ids
    assert [r["id"] for r in by_id(t.rows("seen"))] == ids
    assert t.metrics("clean") == {"records_in": 21, "records_out": 20}
    assert t.metrics("twice")["records_in"] == len([k for k in ids if k % 5 in titles])
    assert t.metrics("items_lookup")["records_in"] == len(ids) + 2
