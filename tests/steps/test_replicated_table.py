"""Tables that every partition keeps: the stream stays where it is, and each row sees all."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import GraphError
from headgate.compile import compile_job
from headgate.home.layout import Home
from headgate.testing import Deleted, JobDriver
from headgate.testing.job_driver import CrashPoint

Make = Callable[..., JobDriver]
USER = "id BIGINT, name STRING"
RULE = "kind STRING, rate DOUBLE"
ORDER = "id BIGINT, user BIGINT, kind STRING"
POINTS = [point for point in get_args(CrashPoint) if point != "mid_sink"]


def orders(*, replicate: bool = True, same_key: bool = False, ttl: str | None = None) -> hg.JobDef:
    """Orders with a user and a rule; with `same_key` both by the user."""

    @hg.job("orders")
    def define(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:users", schema=USER), key="id",
                          replicate=replicate, ttl=ttl)  # fmt: skip
        rules = job.table("rules", hg.topic("log:rules", schema=RULE), key="kind",
                          replicate=replicate)  # fmt: skip
        came = job.source("orders", hg.topic("log:orders", schema=ORDER))
        named = came.lookup("who", users, on="user", take=["name"], missing="side")
        if same_key:
            rated = named.lookup("again", users, on="user", take=["name AS again"], missing="side")
        else:
            rated = named.lookup("rate", rules, on="kind", take=["rate"], missing="null")
        rated.sink("out", hg.topic("log:out"))
        named.missing.sink("unknown", hg.topic("log:unknown"))

    return define


class Story:
    """What the job must give, in plain Python."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.users: dict[int, str] = {}
        self.rules: dict[str, float] = {}
        self.out: list[dict[str, Any]] = []
        self.unknown: list[dict[str, Any]] = []
        self._id = 0

    def batch(self, t: JobDriver) -> None:
        """Changes of tables, then orders, sent to both partitions of each topic."""
        pick = self.random
        for _ in range(pick.randrange(0, 12)):
            user = pick.randrange(40)
            if pick.random() < 0.25:
                self.users.pop(user, None)
                t.send("users", Deleted(user), partition=user % 2)
            else:
                self.users[user] = f"name {pick.randrange(1000)}"
                row = {"id": user, "name": self.users[user]}
                t.send("users", row, partition=user % 2)
        for _ in range(pick.randrange(0, 3)):
            kind, rate = f"kind {pick.randrange(4)}", pick.random()
            self.rules[kind] = rate
            t.send("rules", {"kind": kind, "rate": rate})
        for _ in range(pick.randrange(1, 30)):
            self._id += 1
            user, kind = pick.randrange(50), f"kind {pick.randrange(5)}"
            row = {"id": self._id, "user": user, "kind": kind}
            t.send("orders", row, partition=pick.randrange(2))
            if user in self.users:
                named = {**row, "name": self.users[user], "rate": self.rules.get(kind)}
                self.out.append(named)
            else:
                self.unknown.append(row)

    def check(self, t: JobDriver) -> None:
        """All rows of the sinks, and all state, each row once."""
        assert by_id(t.rows("out")) == self.out
        assert by_id(t.rows("unknown")) == self.unknown
        kept = {row["key"]["id"]: row["row"]["name"] for row in t.state("who").all()}
        assert kept == self.users
        assert len(t.state("who").all()) == len(self.users)
        rates = {row["key"]["kind"]: row["row"]["rate"] for row in t.state("rate").all()}
        assert rates == self.rules


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def stages(spark: SparkSession, run: Callable[[], object]) -> int:
    """How many stages Spark has made meanwhile."""
    scheduler = spark.sparkContext._jsc.sc().dagScheduler()  # type: ignore[union-attr]
    before = int(scheduler.nextStageId())
    run()
    return int(scheduler.nextStageId()) - before


@hg.job("copied")
def copied(job: hg.Job) -> None:
    """A job whose batches have one stage."""
    came = job.source("orders", hg.topic("log:orders", schema=ORDER))
    came.sink("out", hg.topic("log:out"))


@pytest.fixture
def more_stages(job_driver: Make, spark: SparkSession) -> Callable[[JobDriver], int]:
    """How many stages a batch has beyond one; a start has some of its own."""
    plain = job_driver(copied)
    two = ({"id": 1, "user": 1, "kind": "a"}, {"id": 2, "user": 2, "kind": "a"})
    plain.send("orders", *two).run()
    plain.send("orders", *two)
    alone = stages(spark, plain.run)

    def more(t: JobDriver) -> int:
        t.send("orders", *two)
        return stages(spark, t.run) - alone

    return more


def test_rows_and_state_are_those_of_plain_python(job_driver: Make) -> None:
    """With a crash at each point, a restore, other partitions, and the table kept by key again."""
    story, t = Story(7), job_driver(orders(), parallelism=2)
    for number in range(len(POINTS) + 5):
        story.batch(t)
        if number < len(POINTS):
            t.crash(at=POINTS[number]).restore()
        t.run()
        if number == len(POINTS):
            t.restore(parallelism=3)
        elif number == len(POINTS) + 1:
            t.restore(job=orders(replicate=False))
        elif number == len(POINTS) + 2:
            t.restore(job=orders(), parallelism=2)
    story.check(t)
    in_all = sum(len(rows) for rows in (story.out, story.unknown))
    assert t.metrics("orders")["records_out"] == in_all
    found = {name: n for name, n in t.metrics("who").items() if name != "records_in"}
    assert found == {"records_out": len(story.out), "records_out_missing": len(story.unknown)}


def test_counts_and_rows_of_the_state_are_those_of_one_partition(job_driver: Make) -> None:
    t = job_driver(orders(), parallelism=3)
    t.send("users", *({"id": n, "name": str(n)} for n in range(10)))
    t.send("orders", {"id": 1, "user": 3, "kind": "a"}).run()
    t.send("users", Deleted(3), Deleted(4)).run()
    assert t.metrics("who") == {"records_in": 13, "records_out": 1, "records_out_missing": 0}
    run = Home(t.home).job("orders").current()
    assert run is not None
    newest = run.latest_checkpoint()
    assert newest is not None and newest.state["who"]["rows"] == 8


def test_a_stream_is_not_shuffled_for_them(
    job_driver: Make, more_stages: Callable[[JobDriver], int]
) -> None:
    """Two lookups and the sink in one stage; by two keys there are three."""
    found = {}
    for replicate in (True, False):
        t = job_driver(orders(replicate=replicate))
        t.send("users", {"id": 1, "name": "Ann"}).send("rules", {"kind": "a", "rate": 0.5}).run()
        found[replicate] = more_stages(t)
        assert by_id(t.rows("out")) == [
            {"id": 1, "user": 1, "kind": "a", "name": "Ann", "rate": 0.5}
        ]
        assert t.rows("unknown") == [{"id": 2, "user": 2, "kind": "a"}]
    # a table without news needs no stage either
    assert found == {True: 0, False: 2}


def test_a_stream_is_not_shuffled_again_for_the_same_key(
    job_driver: Make, more_stages: Callable[[JobDriver], int]
) -> None:
    t = job_driver(orders(replicate=False, same_key=True))
    t.send("users", {"id": 1, "name": "Ann"}).run()
    assert more_stages(t) == 1
    assert t.rows("out") == [{"id": 1, "user": 1, "kind": "a", "name": "Ann", "again": "Ann"}]


def test_rows_are_forgotten_in_every_partition(job_driver: Make) -> None:
    t = job_driver(orders(ttl="1 minute"), parallelism=3)
    t.send("users", {"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"}).run()
    t.advance_processing_time("50 seconds")
    t.send("users", {"id": 2, "name": "Ben"}).run()
    t.advance_processing_time("20 seconds")
    for partition in range(2):
        for user in (1, 2):
            row = {"id": 10 * partition + user, "user": user, "kind": "a"}
            t.send("orders", row, partition=partition)
    t.run()
    assert [(row["user"], row["name"]) for row in t.rows("out")] == [(2, "Ben"), (2, "Ben")]
    assert [row["user"] for row in t.rows("unknown")] == [1, 1]
    assert [row["key"]["id"] for row in t.state("who").all()] == [2]


class ByTask(hg.PythonSink):
    """Stands for all sinks whose tasks commit: "batch 7 of partition 3 is out"."""

    def __init__(self, by_task: bool) -> None:
        self.by_task = by_task

    def write(self, rows: Iterator[Any], batch: hg.Batch, partition: int) -> int:
        return sum(part.num_rows for part in rows)


@pytest.mark.parametrize(("by_task", "keyed", "placed"), [
    (True, False, True), (False, False, False), (True, True, False),
])  # fmt: skip
def test_a_sink_whose_tasks_commit_gets_its_rows_by_key(
    spark: SparkSession, by_task: bool, keyed: bool, placed: bool
) -> None:
    """Where no keyed step before has placed them: a source's partitions may come in any order."""

    @hg.job("by_task")
    def define(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:u", schema=USER), key="id", replicate=True)
        came = job.source("orders", hg.topic("log:o", schema=ORDER))
        if keyed:
            came = came.key_by("user").dedupe("once", within="1 hour")  # type: ignore[assignment]
        came.lookup("who", users, on="user", missing="drop").sink("out", ByTask(by_task))

    built = define.build(spark=spark, check_connectors=False)
    plan = compile_job(built, spark, parallelism=2).frame._jdf.queryExecution().analyzed()
    assert ("RepartitionByExpression" in plan.toString()) == placed


def test_rows_cannot_wait_for_such_a_table(spark: SparkSession) -> None:
    @hg.job("waits")
    def waits(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:u", schema=USER), key="id", replicate=True)
        came = job.source("orders", hg.topic("log:o", schema=ORDER))
        came.lookup("who", users, on="user", missing=hg.Wait("1 minute"))

    with pytest.raises(GraphError, match="cannot wait for table 'users', which is in every"):
        waits.build(spark=spark, check_connectors=False)
