"""Tables with a ttl: rows that were not updated for so long are forgotten."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import GraphError, RefusedError, UsageError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.run import run
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from headgate.state.diff import diff_states
from headgate.testing import Deleted, JobDriver, assert_crash_safe
from headgate.testing.job_driver import CrashPoint

Make = Callable[..., JobDriver]
NOON = datetime(2026, 1, 1, 12)
USER = "id BIGINT, name STRING, seen TIMESTAMP"
SEEN = hg.event_time("seen")
TTL = 60


def known_users(
    missing: Any = "side",
    *,
    ttl: Any = f"{TTL} seconds",
    seen: hg.EventTime | None = SEEN,
    topics: str = "",
    **options: str,
) -> hg.JobDef:
    """Orders with the names of users who were seen not long ago."""

    @hg.job("known_users")
    def define(job: hg.Job) -> None:
        source = hg.topic(f"log:{topics}users", schema=USER, **options)
        users = job.table("users", source, key="id", ttl=ttl, event_time=seen)
        orders = job.source(
            "orders",
            hg.topic(f"log:{topics}orders", schema="id BIGINT, user_id BIGINT", **options),
        )
        found = orders.lookup("lookup", users, on="user_id", take=["name"], missing=missing)
        found.sink("out", hg.topic(f"log:{topics}out"))
        if missing == "side" or isinstance(missing, hg.Wait):
            found.missing.sink("unknown", hg.topic(f"log:{topics}unknown"))

    return define


def at(second: float) -> datetime:
    return NOON + timedelta(seconds=second)


def user(id: int, second: float | None, name: str = "") -> dict[str, Any]:
    seen = None if second is None else at(second).isoformat() + "Z"
    return {"id": id, "name": name or f"u{id}", "seen": seen}


def order(id: int, user: int) -> dict[str, Any]:
    return {"id": id, "user_id": user}


def names(t: JobDriver) -> dict[int, str]:
    return {row["id"]: row["name"] for row in t.rows("out")}


def ends(t: JobDriver) -> dict[int, Any]:
    """When each row of the table is forgotten, in seconds after noon; None if never."""
    shown = {row["key"]["id"]: row["expires"] for row in t.state("lookup").all()}
    # the store in the order of time says the same of the same rows, no more and no less
    by_time = [(r["key"]["id"], r["expiry"]["expires"]) for r in t.state("lookup", "expiry").all()]
    assert sorted(by_time, key=repr) == sorted(shown.items(), key=repr)
    assert_rows(t, len(shown))
    return {id: end and (end - NOON).total_seconds() for id, end in shown.items()}


def assert_rows(t: JobDriver, rows: int) -> None:
    current = Home(t.home).job("known_users").current()
    record = current.latest_checkpoint() if current else None
    assert record is not None and record.state["lookup"]["rows"] == rows


def test_a_row_is_forgotten_when_the_watermark_reaches_its_end(job_driver: Make) -> None:
    t = job_driver(known_users())
    t.send("users", user(1, 0), user(2, 0.001), user(3, 30)).run()
    assert ends(t) == {1: 60, 2: 60.001, 3: 90}
    # the row that moves the watermark moves it for the next batch
    t.send("users", user(9, 60)).send("orders", order(1, 1)).run()
    assert names(t) == {1: "u1"} and set(ends(t)) == {1, 2, 3, 9}
    t.send("orders", order(2, 1), order(3, 2), order(4, 3)).run()
    assert names(t) == {3: "u2", 4: "u3"} and [r["id"] for r in t.rows("unknown")] == [2]
    assert ends(t) == {2: 60.001, 3: 90, 9: 120}
    assert t.state("lookup").get(id=2) == {"name": "u2"}
    # an update begins anew, a deletion deletes, and one that is forgotten may come back
    t.send("users", user(3, 61, "new"), Deleted(2), Deleted(1), user(1, 59)).run()
    assert ends(t) == {1: 119, 3: 121, 9: 120}
    t.send("orders", *[order(n, n) for n in (1, 2, 3)]).run()
    assert names(t) == {1: "u1", 3: "new"}


def test_rows_that_come_are_ordered_by_position_whatever_their_time(job_driver: Make) -> None:
    t = job_driver(known_users())
    t.send("users", user(9, 100), user(1, 100), user(2, 100), user(3, 100)).run()
    # an older time is a newer version; one that is over already leaves nothing of its key, and one
    # without a time is there until it is updated
    t.send("users", user(1, 50, "older"), user(2, 40), user(3, None), user(4, 10), user(5, 40))
    t.send("users", user(6, 99), user(6, 40), user(7, 40), user(7, 99))
    t.send("orders", *[order(n, n) for n in range(1, 8)]).run()
    assert names(t) == {1: "older", 3: "u3", 7: "u7"}
    assert ends(t) == {9: 160, 1: 110, 3: None, 7: 159}
    t.send("users", user(9, 1000)).run()
    t.send("users", user(8, 1000)).run()
    assert ends(t) == {9: 1060, 8: 1060, 3: None}
    before = t.checkpoint()
    t.send("users", user(3, 950, "new"), user(8, 1001)).run()
    assert ends(t) == {9: 1060, 8: 1061, 3: 1010}
    # a row that is the same, and is there for longer, is not another row
    found = [find_snapshot(Home(t.home), name, "known_users") for name in (before, t.checkpoint())]
    frames = [StateReader(t.spark, snapshot).frame("lookup") for snapshot in found]
    assert diff_states(frames[0], frames[1], limit=9) == (
        {"added": 0, "removed": 0, "changed": 1},
        [
            {
                "change": "changed",
                "key": {"id": 3},
                "before": {"name": "u3"},
                "after": {"name": "new"},
            }
        ],
    )


def test_without_event_time_an_update_has_the_time_of_its_batch(job_driver: Make) -> None:
    t = job_driver(known_users("null", ttl="1 hour", seen=None))
    t.send("users", user(1, 0), user(2, 0)).run()
    (one, two) = (t.state("lookup").all()[n]["expires"] for n in (0, 1))
    late = datetime.now(UTC).replace(tzinfo=None) + timedelta(hours=1) - one
    assert one == two and timedelta() <= late < timedelta(minutes=5)
    t.advance_processing_time("40 minutes").send("users", user(2, 0, "again")).run()
    t.advance_processing_time("30 minutes").send("orders", order(1, 1), order(2, 2))
    # a batch that is replayed has its time from the offset log
    t.crash("before_sink").advance_processing_time("2 hours").restore().run()
    assert names(t) == {1: None, 2: "again"}
    assert [r["key"]["id"] for r in t.state("lookup").all()] == [2]
    t.send("orders", order(3, 2)).run()
    assert names(t) == {3: None} and t.state("lookup").all() == []
    assert t.metrics("lookup")["records_unmatched"] == 2
    assert_rows(t, 0)


def test_rows_wait_for_a_row_that_was_forgotten(job_driver: Make) -> None:
    t = job_driver(known_users(hg.Wait("1 day")))
    t.send("users", user(1, 0), user(9, 100)).run()
    t.send("orders", order(1, 1), order(2, 9)).run()
    assert names(t) == {2: "u9"} and t.metrics("lookup")["records_waiting"] == 1
    # a row that is over when it comes releases nothing, nor does one that another version follows
    t.send("users", user(1, 40), user(9, 101)).run()
    t.send("users", user(1, 99), user(1, 41)).run()
    assert names(t) == {} and t.metrics("lookup")["records_waiting"] == 1
    t.send("users", user(1, 99, "back")).run()
    assert names(t) == {1: "back"} and t.metrics("lookup")["records_waiting"] == 0
    assert ends(t) == {1: 159, 9: 161}


def test_a_drain_forgets_nothing(job_driver: Make) -> None:
    @hg.job("drained")
    def drained(job: hg.Job) -> None:
        source = hg.topic("log:users", schema=USER)
        users = job.table("users", source, key="id", ttl="1 minute", event_time=SEEN)
        orders = job.source("orders", hg.topic("log:orders", schema=USER), event_time=SEEN)
        found = orders.lookup("lookup", users, on="id", take=["name AS user"])
        found.key_by("user").window(
            "minutes", hg.tumbling("1 minute"), F.count("*").alias("n")
        ).sink("out", hg.topic("log:out"))

    t = job_driver(drained)
    t.send("users", user(1, 0)).send("orders", user(1, 5)).run(drain=True)
    assert [(r["user"], r["n"]) for r in t.rows("out")] == [("u1", 1)]
    assert [r["key"]["id"] for r in t.state("lookup").all()] == [1]


def test_state_is_bounded(job_driver: Make) -> None:
    t = job_driver(known_users("drop"))
    sizes = []
    for round in range(7):
        first, begin = round * 300, round * 10 * TTL
        t.send("users", *[user(n, begin + n % 7) for n in range(first, first + 300)]).run()
        # those of the last batch have moved the watermark for the next one
        assert_rows(t, 300 * min(round + 1, 2))
        current = Home(t.home).job("known_users").current()
        record = current.latest_checkpoint() if current else None
        assert record is not None
        sizes.append(record.state["lookup"]["bytes"])
    assert {r["key"]["id"] for r in t.state("lookup").all()} == set(range(1500, 2100))
    assert len(t.state("lookup", "expiry").all()) == 600
    assert sizes[-1] <= sizes[1] * 1.3, sizes


@dataclass
class Model:
    """What a table with a ttl of event time is, in a few lines."""

    rows: dict[int, tuple[str, float | None]] = field(default_factory=dict)
    newest: float | None = None

    def batch(self, changes: list[Any], orders: list[Any]) -> dict[int, str | None]:
        mark = self.newest
        self._forget(mark)
        for change in changes:
            if isinstance(change, Deleted):
                self.rows.pop(change.key, None)
                continue
            seen = (
                change["seen"]
                and (
                    datetime.fromisoformat(change["seen"]).replace(tzinfo=None) - NOON
                ).total_seconds()
            )
            self.rows[change["id"]] = (change["name"], None if seen is None else seen + TTL)
            if seen is not None:
                self.newest = seen if self.newest is None else max(self.newest, seen)
        self._forget(mark)
        return {o["id"]: self.rows.get(o["user_id"], (None, None))[0] for o in orders}

    def _forget(self, mark: float | None) -> None:
        if mark is not None:
            self.rows = {k: (n, e) for k, (n, e) in self.rows.items() if e is None or e > mark}


def random_batches(rng: random.Random, count: int, size: int) -> Iterator[tuple[list, list]]:
    """Changes and orders of each batch: disorder, deletions, rows without a time, and bursts."""
    clock, number = 0.0, 0
    for _ in range(count):
        clock += rng.choice([0, 1, 7, 20, 20, 61])
        changes: list[Any] = []
        orders = []
        for _ in range(size):
            number += 1
            key, kind = rng.randrange(12), rng.random()
            second = clock - rng.choice([0, 0, 1, 15, 59, 60, 80])
            if kind < 0.1:
                changes.append(Deleted(key))
            else:
                changes.append(user(key, None if kind < 0.13 else second, f"v{number}"))
            orders.append(order(number, rng.randrange(13)))
        yield changes, orders


def test_it_is_the_model_with_crashes_restarts_and_other_parallelism(job_driver: Make) -> None:
    rng = random.Random(11)
    points = get_args(CrashPoint)
    t, model = job_driver(known_users("null")), Model()
    for n, (changes, orders) in enumerate(random_batches(rng, 12, 8)):
        t.send("users", *changes).send("orders", *orders)
        if n % 3 == 1:
            t.crash(points[n // 3]).restore()
        elif n in (5, 8):
            t.restore(t.savepoint(), parallelism=3 if n == 5 else 2)
        t.run()
        assert names(t) == model.batch(changes, orders), n
        if n % 2:
            assert ends(t) == {key: end for key, (_, end) in model.rows.items()}, n


@pytest.mark.parametrize("cache", ["100m", "0"])
def test_it_is_the_model_in_a_query_of_many_batches(
    spark: SparkSession, tmp_path: Path, cache: str
) -> None:
    """Rows stay in the cache from batch to batch, and only what became over since is looked at."""
    size, model = 6, Model()
    users, orders = (TopicFiles(str(tmp_path / name)) for name in ("users", "orders"))
    wanted: dict[int, str | None] = {}
    for topic in (users, orders):
        topic.create(1)
    for changes, looked in random_batches(random.Random(5), 25, size):
        users.append([_change(c) for c in changes])
        orders.append([Record(value=json.dumps(o), key=None) for o in looked])
        wanted |= model.batch(changes, looked)
    spark.conf.set("spark.headgate.cache.bytes", cache)
    try:
        job = known_users("null", topics=f"{tmp_path}/", max_records=str(size))
        outcome = run(job, home=str(tmp_path / "home"), bounded=True, spark=spark)
    finally:
        spark.conf.unset("spark.headgate.cache.bytes")
    assert outcome.error is None
    rows = [json.loads(r.value or "") for r in TopicFiles(str(tmp_path / "out")).read()]
    assert {r["id"]: r.get("name") for r in rows} == wanted
    assert len(rows) == len(wanted) and len(set(wanted.values())) > 30
    state = StateReader(spark, find_snapshot(Home(str(tmp_path / "home")), "latest", job.name))
    kept = {r["key"]["id"]: r["row"]["name"] for r in state.view("lookup").all()}
    assert kept == {key: name for key, (name, _) in model.rows.items()}


def _change(change: Any) -> Record:
    if isinstance(change, Deleted):
        return Record(value=None, key=str(change.key))
    return Record(value=json.dumps(change), key=str(change["id"]))


@pytest.mark.slow
def test_it_is_safe_in_crashes() -> None:
    script = [("users", user(1, 0)), ("users", user(9, 60))]
    script += [("orders", order(1, 1)), ("orders", order(2, 9))]
    assert_crash_safe(known_users(), script)


def test_a_ttl_is_added_changed_and_removed(job_driver: Make) -> None:
    t = job_driver(known_users("null", ttl=None, seen=None))
    assert [s["value"]["fields"][0]["name"] for s in stores(t)] == ["row"]
    t.send("users", user(1, 0), user(2, 0)).run()
    assert [set(row) for row in t.state("lookup").all()] == [{"key", "row"}] * 2
    # rows that were there count as updated in the first batch
    t.restore(job=known_users("null", ttl="1 hour", seen=None), parallelism=3)
    t.advance_processing_time("10 minutes").send("users", user(3, 0)).run()
    before = {r["key"]["id"]: r["expires"] for r in t.state("lookup").all()}
    assert len(set(before.values())) == 1 and set(before) == {1, 2, 3}
    assert len(t.state("lookup", "expiry").all()) == 3
    # a longer one holds from the next update on
    t.restore(job=known_users("null", ttl="3 hours", seen=None)).send("users", user(2, 0)).run()
    after = {r["key"]["id"]: r["expires"] for r in t.state("lookup").all()}
    assert after[1] == before[1] and after[2] - before[2] >= timedelta(hours=2)
    with pytest.raises(RefusedError, match="went by processing time and goes by event time"):
        t.restore(job=known_users("null")).run()
    t.advance_processing_time("70 minutes").restore(
        job=known_users("null", ttl="3 hours", seen=None)
    )
    t.send("orders", order(1, 1), order(2, 2)).run()
    assert names(t) == {1: None, 2: "u2"}
    # without one, what is there stays
    t.restore(job=known_users("null", ttl=None, seen=None)).advance_processing_time("9 hours")
    t.send("orders", order(3, 1), order(4, 2)).run()
    assert names(t) == {3: None, 4: "u2"}
    assert [s["name"] for s in stores(t)] == ["default"]
    # by event time, they count as updated at the watermark; there is none yet
    t.restore(job=known_users("null")).send("users", user(5, 0), user(6, 500)).run()
    assert ends(t) == {2: None, 5: 60, 6: 560}
    t.send("users", user(2, 490)).run()
    assert ends(t) == {2: 550, 6: 560}


def stores(t: JobDriver) -> list[Any]:
    from headgate.compile.compiled import compile_job

    compiled = compile_job(t.built, t.spark, parallelism=2)
    return list(next(step.stores for step in compiled.graph.steps if step.id == "lookup"))


def plan_of(t: JobDriver, job: hg.JobDef) -> str:
    from headgate.compile.compiled import compile_job
    from headgate.snapshots.upgrade import plan_upgrade

    built = compile_job(job.build(spark=t.spark, check_connectors=False), t.spark, parallelism=2)
    snapshot = find_snapshot(Home(t.home), t.checkpoint(), "known_users")
    changes = plan_upgrade(snapshot, json.loads(built.graph.json()), parallelism=2).steps
    return next(f"{c.mark} {c.text}; {c.note}" for c in changes if c.name == "lookup")


def test_a_plan_says_what_another_ttl_means(job_driver: Make) -> None:
    t = job_driver(known_users(ttl="1 hour", seen=None))
    t.send("users", user(1, 0)).run()
    assert plan_of(t, known_users(ttl=None, seen=None)) == (
        "~ state unchanged but for the times of its rows; "
        "rows are not forgotten any more; those that are gone do not come back"
    )
    assert plan_of(t, known_users(ttl="2 hours", seen=None)) == (
        "~ state unchanged; the ttl was 1 hour of processing time and is 2 hours of processing "
        "time: it holds for a row from its next update on"
    )
    assert plan_of(t, known_users(ttl="1 hour")).startswith(
        "! state does not fit: the ttl went by processing time and goes by event time"
    )
    t.restore(job=known_users(ttl=None, seen=None)).run()
    assert plan_of(t, known_users(ttl="7 days")) == (
        "~ state unchanged but for the times of its rows; rows are forgotten after 7 days of "
        "event time; those that are there count as updated now"
    )


@pytest.mark.parametrize("given", ["0 seconds", timedelta(0), timedelta(microseconds=5)])
def test_a_ttl_must_be_greater_than_zero(spark: SparkSession, given: Any) -> None:
    with pytest.raises(GraphError, match=r"ttl must be (greater than zero|1 millisecond)") as error:
        known_users(ttl=given).build(spark=spark, check_connectors=False)
    assert repr(given) in str(error.value)


def test_what_is_not_a_ttl_is_refused(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="ttl must be a timedelta or text"):
        known_users(ttl="a week or so").build(spark=spark, check_connectors=False)
    with pytest.raises(GraphError, match="a table with event_time must have a ttl"):
        known_users(ttl=None).build(spark=spark, check_connectors=False)
    with pytest.raises(GraphError, match="event_time must be a timestamp"):
        known_users(seen=hg.event_time("name")).build(spark=spark, check_connectors=False)


def test_a_silent_table_that_holds_the_watermark_of_others_is_warned_of(
    spark: SparkSession,
) -> None:
    def warnings(seen: hg.EventTime, others: hg.EventTime | None) -> tuple[str, ...]:
        @hg.job("held")
        def held(job: hg.Job) -> None:
            source = hg.topic("log:users", schema=USER)
            users = job.table("users", source, key="id", ttl="1 minute", event_time=seen)
            stream = job.source("s", hg.topic("log:s", schema=USER), event_time=others)
            stream.lookup("lookup", users, on="id").sink("out", hg.topic("log:out"))

        return held.build(spark=spark, check_connectors=False).graph.warnings

    (warning,) = warnings(SEEN, SEEN)
    assert "table 'users'" in warning and "idle_after" in warning
    assert warnings(hg.event_time("seen", idle_after="1 minute"), SEEN) == ()
    assert warnings(SEEN, None) == ()
