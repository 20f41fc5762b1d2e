"""Lookups as of a time: the version of a table's row that was valid then."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import GraphError, RefusedError
from headgate.connectors.log import connector as log
from headgate.snapshots.spark_log import read_entry
from headgate.testing import CrashPoint, Deleted, JobDriver
from tests.steps.as_of_truth import ENDED, NEVER, AsOfTruth, Order, Rate
from tests.steps.seeds import seeds

Make = Callable[..., JobDriver]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
RATE = "code STRING, rate BIGINT, gone BOOLEAN, since TIMESTAMP"
ORDER = "id BIGINT, code STRING, at TIMESTAMP, other TIMESTAMP"
DELAY = 20
KEYS = 190
STEPS = (("null", False), ("drop", True), ("side", False))


def at(second: float | None) -> str | None:
    return None if second is None else (NOON + timedelta(seconds=second)).isoformat()


def rate(code: str | None, second: int | None, value: int | None) -> dict[str, Any]:
    return {"code": code, "rate": value, "gone": value is None, "since": at(second)}


def order(id: int, code: str | None, second: float | None, other: int | None = None) -> Any:
    return {"id": id, "code": code, "at": at(second), "other": at(other)}


def table_of(job: hg.Job, keep: str = "1 hour", **event_time: Any) -> hg.Table:
    return job.table(
        "rates",
        hg.topic("log:rates", schema=RATE),
        key="code",
        delete_when="gone",
        versions=hg.Versions(keep=keep),
        event_time=hg.event_time("since", **event_time),
    )


def orders_of(job: hg.Job, delay: int = 0) -> hg.Stream:
    return job.source(
        "orders",
        hg.topic("log:orders", schema=ORDER),
        event_time=hg.event_time("at", out_of_orderness=f"{delay} s"),
    )


def priced(keep: str = "1 hour", **event_time: Any) -> hg.JobDef:
    @hg.job("priced")
    def define(job: hg.Job) -> None:
        rates = table_of(job, keep, **event_time)
        found = orders_of(job).lookup(
            "rate", rates, on="code", take=["rate"], missing="side", as_of="event_time"
        )
        found.sink("out", hg.topic("log:out"))
        found.missing.sink("unknown", hg.topic("log:unknown"))

    return define


def seen(t: JobDriver) -> dict[int, int | None]:
    return {row["id"]: row["rate"] for row in t.rows("out")}


def unknown(t: JobDriver) -> list[int]:
    return sorted(row["id"] for row in t.rows("unknown"))


def test_a_row_waits_for_the_table_and_gets_the_version_of_its_time(job_driver: Make) -> None:
    t = job_driver(priced())
    t.send("rates", rate("EUR", 0, 10), rate("EUR", 60, 11), rate("USD", 30, 20))
    t.send("orders", order(1, "EUR", 59.5), order(2, "EUR", 60), order(3, "EUR", -1)).run()
    assert (seen(t), unknown(t)) == ({1: 10}, [3])  # the table is at 60, and more of 60 may come
    assert [row["waiting"]["id"] for row in t.state("rate", "waiting").all()] == [2]
    (older,) = t.state("rate", "versions").all()
    assert older["versions"]["version"]["rate"] == 10
    assert older["versions"]["valid_from"] == NOON.replace(tzinfo=None)
    t.send("rates", rate("EUR", 60, 12), rate("USD", 61, None), rate("EUR", 90, 13)).run()
    assert seen(t) == {2: 12}
    t.send("rates", rate("EUR", 50, 9))  # late, and put at its place
    t.send("orders", order(4, "EUR", 55), order(5, "USD", 60), order(6, "USD", 62)).run()
    assert (seen(t), unknown(t)) == ({4: 9, 5: 20}, [6])
    t.send("orders", order(7, None, 5), order(8, "EUR", None), order(9, "GBP", 5)).run()
    assert (seen(t), unknown(t)) == ({}, [7, 8, 9])
    t.send("orders", order(10, "EUR", 1000)).run()
    assert (seen(t), unknown(t)) == ({}, [])
    t.run(drain=True)
    assert seen(t) == {10: 13}
    assert t.state("rate", "waiting").all() == []
    counts = t.metrics("rate")
    assert counts["records_out"] == 5 and counts["records_out_missing"] == 5
    assert counts["records_in"] == 17


def test_a_quiet_table_is_not_waited_for(job_driver: Make) -> None:
    t = job_driver(priced(idle_after="10 minutes"))
    t.send("rates", rate("EUR", 0, 10)).send("orders", order(1, "EUR", 30)).run()
    assert seen(t) == {}
    t.advance_processing_time("11 minutes").run()
    assert seen(t) == {1: 10}


def test_a_tombstone_has_the_newest_time_of_the_table(job_driver: Make) -> None:
    t = job_driver(priced())
    t.send("rates", rate("EUR", 0, 10), rate("USD", 40, 20)).run()
    t.send("rates", Deleted("EUR"), rate("USD", 100, 21))
    t.send("orders", order(1, "EUR", 39), order(2, "EUR", 41)).run()
    assert (seen(t), unknown(t)) == ({1: 10}, [2])


def test_rows_that_wait_are_not_late_for_a_window(job_driver: Make) -> None:
    @hg.job("per_minute")
    def define(job: hg.Job) -> None:
        rates = table_of(job, idle_after="10 minutes")
        found = orders_of(job).lookup("rate", rates, on="code", take=["rate"], as_of="event_time")
        minutes = found.key_by("rate").window(
            "minutes", hg.tumbling("1 minute"), F.collect_set("id").alias("ids")
        )
        minutes.select("rate", "ids").sink("out", hg.topic("log:out"))
        minutes.late.sink("late", hg.topic("log:late"))

    t = job_driver(define)
    t.send("rates", rate("EUR", 0, 10))
    t.send("orders", order(1, "EUR", 30), order(2, "EUR", 45), order(3, "EUR", 400)).run()
    t.advance_processing_time("11 minutes")
    t.send("orders", order(4, "EUR", 500)).run()
    t.run(drain=True)
    rows = [(row["rate"], row["ids"]) for row in t.rows("out")]
    assert sorted(rows) == [(10, [1, 2]), (10, [3]), (10, [4])]
    assert t.rows("late") == []


def test_versions_are_forgotten_but_for_the_one_that_is_valid(job_driver: Make) -> None:
    t = job_driver(priced("1 minute"))
    sizes = []
    for window in range(200):
        start = 60 * window
        t.send("rates", *[rate("EUR", start + n, window) for n in (0, 20, 40)])
        t.send("rates", rate(f"K{window}", start, 1), rate(f"K{window}", start + 10, None))
        t.send("orders", order(window, "EUR", start + 30))
        if window % 50 == 49:
            t.run()
            t.run()
            sizes.append([len(t.state("rate", s).all()) for s in ("default", "versions", "due")])
    assert sizes[0] == sizes[-1], sizes
    # a minute behind the newest: what is left of EUR and of the last key
    assert max(sizes[0]) <= 8, sizes


def wrong_jobs() -> dict[str, Callable[[hg.Job], Any]]:
    rates = hg.topic("log:rates", schema=RATE)
    seen = hg.event_time("since")
    keep = hg.Versions(keep="1 hour")
    return {
        "must keep versions": lambda job: orders_of(job).lookup(
            "l", job.table("rates", rates, key="code"), on="code", as_of="event_time"
        ),
        "must have event_time": lambda job: job.table("r", rates, key="code", versions=keep),
        "exclude each other": lambda job: job.table(
            "r", rates, key="code", versions=keep, ttl="1 h", event_time=seen
        ),
        "must be hg.Versions": lambda job: job.table(
            "r", rates, key="code", versions="1 h", event_time=seen
        ),
        "leave Wait out": lambda job: orders_of(job).lookup(
            "l", table_of(job), on="code", as_of="at", missing=hg.Wait("1 s")
        ),
        "as_of must be a timestamp": lambda job: orders_of(job).lookup(
            "l", table_of(job), on="code", as_of="id"
        ),
        "no event time": lambda job: job.source(
            "plain", hg.topic("log:plain", schema=ORDER)
        ).lookup("l", table_of(job), on="code", as_of="event_time"),
    }


@pytest.mark.parametrize("says", list(wrong_jobs()))
def test_a_mistake_is_told_in_a_sentence(spark: object, says: str) -> None:
    with pytest.raises(GraphError, match=says):
        hg.job("wrong")(wrong_jobs()[says]).describe()


def test_upgrades(job_driver: Make) -> None:
    t = job_driver(priced())
    t.send("rates", rate("EUR", 0, 10), rate("EUR", 60, 11)).run()
    point = t.savepoint("before")

    @hg.job("priced")
    def plain(job: hg.Job) -> None:
        found = orders_of(job).lookup("rate", table_of(job), on="code", take=["rate"])
        found.sink("out", hg.topic("log:out"))

    with pytest.raises(RefusedError):
        t.restore(point, job=plain).run()
    t.restore(point, job=priced("2 hours"), parallelism=3)
    t.send("orders", order(1, "EUR", 30)).run()
    assert seen(t) == {1: 10}


def job_of(keeps: list[int]) -> hg.JobDef:
    @hg.job("random")
    def define(job: hg.Job) -> None:
        told = []
        for number, (missing, other) in enumerate(STEPS):
            rates = job.table(
                f"rates{number}",
                hg.topic("log:rates", schema=RATE),
                key="code",
                delete_when="gone",
                versions=hg.Versions(keep=f"{keeps[number]} s"),
                event_time=hg.event_time("since", out_of_orderness=f"{DELAY} s"),
            )
            if number == 0:
                orders = orders_of(job, DELAY)
            found = orders.lookup(
                f"l{number}",
                rates,
                on="code",
                take=["rate"],
                missing=missing,  # type: ignore[arg-type]
                as_of="other" if other else "event_time",
            )
            told.append(found.select(f"{number} AS step", "'out' AS output", "id", "rate"))
            if missing == "side":
                none = "CAST(NULL AS BIGINT) AS rate"
                told.append(
                    found.missing.select(f"{number} AS step", "'missing' AS output", "id", none)
                )
        told[0].union(*told[1:]).sink("told", hg.topic("log:told"))

    return define


def random_rows(dice: random.Random, count: int) -> list[Rate | Order]:
    found: list[Rate | Order] = []
    for id in range(count):
        now = id * 900 // count
        late = dice.choice([0, 5, DELAY]) if dice.random() < 0.9 else 300
        time = None if dice.random() < 0.01 else now - dice.randint(0, late)
        key = None if dice.random() < 0.01 else f"k{dice.randrange(KEYS)}"
        if dice.random() < 0.5:
            value = None if dice.random() < 0.15 else dice.randrange(1000)
            found.append(Rate(key, 0 if time is None and value is None else time, value))
        else:
            other = None if dice.random() < 0.01 else now + dice.randint(-100, 60)
            found.append(Order(id, key, time, other))
    return found


class Story:
    """A job with its truths along the line of its checkpoints."""

    def __init__(self, dice: random.Random) -> None:
        keeps = [dice.choice([0, 30, 200]) for _ in STEPS]
        self.truths = [
            AsOfTruth(keep, missing, other)
            for keep, (missing, other) in zip(keeps, STEPS, strict=True)
        ]
        self.sent: dict[str, list[Any]] = {"orders": [], "rates": []}
        self.done = -1
        self.mark = NEVER
        self.kept: dict[str, tuple[int, float, list[AsOfTruth]]] = {}
        self.driver = JobDriver(job_of(keeps), parallelism=dice.choice([1, 2]))

    def send(self, rows: list[Rate | Order]) -> None:
        rates = [row for row in rows if isinstance(row, Rate)]
        orders = [row for row in rows if isinstance(row, Order)]
        self.sent["rates"] += rates
        self.sent["orders"] += orders
        for number in range(len(STEPS)):
            self.driver.send(f"rates{number}", *[rate(r.key, r.time, r.value) for r in rates])
        self.driver.send("orders", *[order(o.id, o.key, o.time, o.other) for o in orders])

    def restore(self, checkpoint: str, parallelism: int) -> None:
        self.driver.restore(checkpoint, parallelism=parallelism)
        done, mark, truths = self.kept[checkpoint]
        self.done, self.mark, self.truths = done, mark, copy.deepcopy(truths)

    def run(self, *, drain: bool = False) -> None:
        self.driver.run(drain=drain)
        before = [len(truth.out) for truth in self.truths]
        home = self.driver._run_home
        for record in home.checkpoints():
            if record.id > self.done:
                self._live(record, read_entry(home, record.id))
                self.done = record.id
                kept = (self.done, self.mark, copy.deepcopy(self.truths))
                self.kept[f"{home.id}/ck:{record.id}"] = kept
        found: dict[int, list[Any]] = {number: [] for number in range(len(STEPS))}
        for row in self.driver.rows("told"):
            found[row["step"]].append((row["output"], row["id"], row["rate"]))
        for number, (truth, at) in enumerate(zip(self.truths, before, strict=True)):
            wanted, got = Counter(truth.out[at:]), Counter(found[number])
            assert wanted == got, f"l{number}: missing {wanted - got}, not due {got - wanted}"

    def _live(self, record: Any, entry: Any) -> None:
        ended = any('"drained":true' in line for line in entry.lines)
        watermark = NEVER
        if entry.watermark_ms:
            watermark = entry.watermark_ms / 1000 - NOON.timestamp()

        def came(source: str, topic: str) -> list[Any]:
            offsets = record.sources[source]
            start, end = (int(o.get("0", 0)) for o in (offsets.start, offsets.end))
            return self.sent[topic][start:end]

        rates = came("rates0", "rates")
        for truth in self.truths:
            mark = ENDED if ended else self.mark
            truth.batch(rates, came("orders", "orders"), mark, watermark)
        times = [r.time - DELAY for r in rates if r.time is not None]
        self.mark = max([self.mark, *times])


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds())
def test_lookups_as_of_a_time_agree_with_plain_python(seed: int, spark: object) -> None:
    dice = random.Random(seed)
    story = Story(dice)
    rows = random_rows(dice, 2000)
    share = -(-len(rows) // 4)
    with pytest.MonkeyPatch.context() as patch, story.driver as driver:
        patch.setattr(log, "MAX_RECORDS", str(dice.randint(share // 5, share // 2)))
        for start in range(0, len(rows), share):
            last = start + share >= len(rows)
            if last:
                story.restore(dice.choice(list(story.kept)), dice.choice([1, 2, 3]))
            story.send(rows[start : start + share])
            if dice.random() < 0.7:
                driver.crash(at=dice.choice(get_args(CrashPoint))).restore()
            story.run(drain=last)
        for number in range(len(STEPS)):
            assert driver.state(f"l{number}", "waiting").all() == []
    looked = {row.key for row in rows if isinstance(row, Order)}
    versioned = {row.key for row in rows if isinstance(row, Rate)}
    assert len(looked & versioned) * len(STEPS) >= 500
    for truth, (missing, _) in zip(story.truths, STEPS, strict=True):
        assert any(row[2] is not None for row in truth.out)
        assert missing == "drop" or any(row[2] is None for row in truth.out)
