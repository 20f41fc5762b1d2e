"""Changes by key in a broker's topic: upserts replace rows, tombstones delete them."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from tests.brokers.pipe import Pipe
from tests.brokers.systems import Message, System

BATCH = 120


def compacted(records: list[Message]) -> dict[str | None, Any]:
    """What compaction leaves of a topic: the last value of each key, none where it is deleted."""
    last = {record.key: record.value for record in records}
    return {key: json.loads(value) for key, value in last.items() if value is not None}


def test_totals_are_upserts_and_tombstones_each_once(
    spark: SparkSession, tmp_path: Path, system: System
) -> None:
    pipe = Pipe(spark, tmp_path, system)
    orders, totals = system.topic(2), system.topic(3)

    @hg.job("pipe")
    def job(job: hg.Job) -> None:
        schema = "user STRING, price BIGINT"
        rows = job.source("orders", hg.topic(system.address(orders), schema=schema))
        sums = rows.key_by("user").aggregate(
            "totals",
            F.sum("price").alias("total"),
            F.count_distinct("price").alias("prices"),
            having="total BETWEEN 5 AND 20",
        )
        sums.sink("out", hg.topic(system.address(totals), key="user"))

    dice = random.Random(3)
    prices: dict[str, list[int]] = {}
    before: dict[str | None, Any] = {}
    told: Counter[tuple[str | None, str]] = Counter()
    for point in (None, "in_transaction", "after_sink"):
        came = [(f"u{dice.randrange(70)}", dice.randint(-9, 15)) for _ in range(BATCH)]
        system.send(orders, [Message(json.dumps({"user": u, "price": p}), u) for u, p in came])
        for user, price in came:
            prices.setdefault(user, []).append(price)
        if point is not None:
            pipe.crash(point, job)
        pipe.go(job)
        truth: dict[str | None, Any] = {
            user: {"user": user, "total": sum(all), "prices": len(set(all))}
            for user, all in prices.items()
            if 5 <= sum(all) <= 20
        }
        changed = {key: row for key, row in truth.items() if before.get(key) != row}
        told.update((key, str(row)) for key, row in changed.items())
        told.update((key, "deleted") for key in before.keys() - truth.keys())
        records = system.read(totals)
        rows = [(r.key, str(json.loads(r.value)) if r.value else "deleted") for r in records]
        assert Counter(rows) == told, point
        assert compacted(records) == truth
        before = truth
    assert sum(text == "deleted" for _, text in told.elements()) > 10
