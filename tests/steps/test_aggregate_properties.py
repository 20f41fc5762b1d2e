"""Running aggregates over a random stream agree with plain Python.

One job has two aggregates over a stream of many sparse keys. A case is a key: keys do not touch
each other, but share batches, watermark, crashes and restores.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.snapshots.spark_log import read_entry
from headgate.testing import CrashPoint, JobDriver
from tests.steps.aggregate_truth import (
    NEVER,
    AggregateTruth,
    Changes,
    Row,
    Table,
    result,
)
from tests.steps.seeds import seeds

START = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = 600
ROWS = 6000
SECONDS = 900
TTL = 120
STEPS = ("all", "recent")


@hg.job("random")
def job(job: hg.Job) -> None:
    rows = job.source(
        "rows",
        hg.topic("log:rows", schema="key STRING, value BIGINT, tag STRING, at TIMESTAMP"),
        event_time=hg.event_time("at", out_of_orderness="20 seconds"),
    ).key_by("key")
    aggregates = [
        F.sum("value").alias("total"),
        F.count("*").alias("n"),
        F.min("value").alias("low"),
        F.max("value").alias("high"),
        F.count_distinct("tag").alias("tags"),
        F.expr("sum(DISTINCT value)").alias("once"),
        F.collect_set("tag").alias("set"),
    ]
    whole = rows.aggregate("all", *aggregates, having="total % 3 <> 0 AND tags < 6")
    recent = rows.aggregate("recent", *aggregates, having="n > 1", ttl=f"{TTL} seconds")
    for name, made in zip(STEPS, (whole, recent), strict=True):
        made.sink(name + "_out", hg.topic(f"log:{name}", key="key"))


def truths() -> list[AggregateTruth]:
    return [
        AggregateTruth(lambda r: r["total"] is not None and r["total"] % 3 != 0 and r["tags"] < 6),
        AggregateTruth(lambda r: r["n"] > 1, TTL),
    ]


def random_rows(dice: random.Random) -> list[Row]:
    """Time goes on, with disorder and rows far behind; each key has rows now and then."""
    found = []
    for number in range(ROWS):
        now = number * SECONDS // ROWS
        back = dice.randint(0, 20) if dice.random() < 0.9 else dice.randint(0, 3 * TTL)
        key = None if dice.random() < 0.01 else f"k{dice.randrange(KEYS)}"
        value = None if dice.random() < 0.1 else dice.randint(-9, 9)
        tag = None if dice.random() < 0.1 else dice.choice("abcdefghij")
        found.append(Row(key, value, tag, None if dice.random() < 0.02 else now - back))
    return found


class Story:
    """A job with its truths, and the tables that its changes have made, along its checkpoints."""

    def __init__(self) -> None:
        self.driver = JobDriver(job, parallelism=2)
        self.sent: tuple[list[Row], list[Row]] = ([], [])
        self.truths = truths()
        self.tables: list[Table] = [{}, {}]
        self.done = -1
        self.deleted = [0, 0]
        self.kept: dict[str, tuple[int, list[AggregateTruth], list[Table]]] = {}

    def send(self, rows: list[Row], dice: random.Random) -> None:
        for row in rows:
            self.sent[dice.randrange(2)].append(row)
        for number, sent in enumerate(self.sent):
            there = self.driver.topic("rows").end_offsets().get(number, 0)
            self.driver.send("rows", *map(_record, sent[there:]), partition=number)

    def restore(self, checkpoint: str, parallelism: int) -> None:
        self.driver.restore(checkpoint, parallelism=parallelism)
        self.done, self.truths, self.tables = copy.deepcopy(self.kept[checkpoint])

    def run(self) -> None:
        """Live through what was sent, and compare every change and the tables."""
        self.driver.run()
        home = self.driver._run_home
        wanted: list[list[Changes]] = [[], []]
        mark = NEVER
        for record in home.checkpoints():
            if record.id > self.done:
                came, mark = self._batch(record, read_entry(home, record.id))
                for truth, changes in zip(self.truths, wanted, strict=True):
                    changes.append(truth.batch(came, mark))
                self.done = record.id
        for number, (step, truth) in enumerate(zip(STEPS, self.truths, strict=True)):
            got = [(key, row and _result(key, row)) for key, row in self._changes(step)]
            due = [change for changes in wanted[number] for change in changes.items()]
            assert Counter(map(str, got)) == Counter(map(str, due)), step
            for key, row in got:
                if row is None:
                    self.tables[number].pop(
                        key
                    )  # a deletion of what is not there would say nothing
                    self.deleted[number] += 1
                else:
                    self.tables[number][key] = row
            assert self.tables[number] == truth.table(), step
        self.kept[self.driver.checkpoint()] = copy.deepcopy((self.done, self.truths, self.tables))

    def _changes(self, step: str) -> list[tuple[str | None, dict[str, Any] | None]]:
        return self.driver.changes(f"{step}_out")

    def _batch(self, record: Any, entry: Any) -> tuple[list[Row], float]:
        offsets = record.sources["rows"]
        came = []
        for number, sent in enumerate(self.sent):
            start, end = (int(o.get(str(number), 0)) for o in (offsets.start, offsets.end))
            came += sent[start:end]
        mark = entry.watermark_ms / 1000 - START.timestamp() if entry.watermark_ms else NEVER
        return came, mark

    def check_state(self) -> None:
        """Compare the whole state: buffers, flags and times of all keys, and of no others."""
        for step, truth in zip(STEPS, self.truths, strict=True):
            found = {r["key"]["key"]: _state(r["row"]) for r in self.driver.state(step).all()}
            assert found == {key: _wanted(truth, key) for key in truth.rows}, step
        due = Counter(r["key"]["key"] for r in self.driver.state("recent", "due").all())
        assert due == Counter(list(self.truths[1].rows))


def _wanted(truth: AggregateTruth, key: str | None) -> dict[str, Any]:
    rows, made = truth.rows[key], result(truth.rows[key])
    until = truth.until[key]
    return {
        **{name: made[name] for name in ("total", "n", "low", "high")},
        "tags": {row.tag for row in rows},
        "once": {row.value for row in rows},
        "set": set(made["set"]),
        "flags": int(truth.having(made)),
        "expires": None if until is None else _utc(until),
    }


def _state(row: dict[str, Any]) -> dict[str, Any]:
    """A row of state with its sets as sets; which one comes first in them is nobody's business."""
    shown = {name: row[name] for name in ("total", "n", "low", "high", "flags", "expires")}
    tags = {None if r[0] else r[16 : 16 + _long(r, 8) % 2**32].decode() for r in _each(row["tags"])}
    once = {None if r[0] else _long(r, 8) for r in _each(row["once"])}
    array = row["set"][16:]
    places = [_long(array, 16 + 8 * n) for n in range(_long(array, 0))]
    texts = {array[p >> 32 : (p >> 32) + p % 2**32].decode() for p in places}
    return {**shown, "tags": tags, "once": once, "set": texts}


def _each(data: bytes) -> Iterator[bytes]:
    """The rows of Spark's own form in a buffer, each behind its length."""
    while data:
        size = int.from_bytes(data[:4], "big")
        yield data[4 : 4 + size]
        data = data[4 + size :]


def _long(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little", signed=True)


def _utc(seconds: float) -> datetime:
    return (START + timedelta(seconds=seconds)).replace(tzinfo=None)


def _record(row: Row) -> dict[str, Any]:
    at = None if row.time is None else (START + timedelta(seconds=row.time)).isoformat()
    return {"key": row.key, "value": row.value, "tag": row.tag, "at": at}


def _result(key: str | None, row: dict[str, Any]) -> dict[str, Any]:
    assert row["key"] == key
    return {name: value for name, value in row.items() if name != "key"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(7))
def test_aggregates_agree_with_plain_python(seed: int, spark: object) -> None:
    dice = random.Random(seed)
    rows, story = random_rows(dice), Story()
    share = -(-len(rows) // 4)
    with pytest.MonkeyPatch.context() as patch, story.driver as driver:
        for number in range(4):
            patch.setattr(log, "MAX_RECORDS", str(dice.randint(share // 3, share)))
            if number == 3:
                story.restore(list(story.kept)[-2], parallelism=3)  # not the last one
            story.send(rows[number * share : (number + 1) * share], dice)
            if number % 2:
                driver.crash(at=dice.choice(get_args(CrashPoint))).restore()
            story.run()
        story.check_state()
    assert len({row.key for row in rows}) >= 500
    assert all(count > 100 for count in story.deleted), story.deleted
    assert story.truths[1].forgotten > 100
