"""Jobs that write Kafka: each row once after crashes, again after a restore, never by a fork."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import GraphError, HeadgateError, NotFoundError, RefusedError
from headgate.failures import Reason
from headgate.home.layout import Home
from headgate.runtime.run import RunOutcome, run
from tests.kafka.client import Kafka, Send

SCHEMA = "id BIGINT, url STRING"
TASK_POINTS = ("before_transaction", "in_transaction", "after_transaction")


@pytest.fixture
def kafka(kafka_servers: str) -> Kafka:
    return Kafka(kafka_servers)


class Pipe:
    """A stateful job from Kafka to two Kafka topics: known keys to one, the others to the other."""

    def __init__(self, spark: SparkSession, folder: Path, kafka: Kafka) -> None:
        self.spark, self.kafka, self.home = spark, kafka, str(folder / "home")
        self.users, self.visits = kafka.topic(2), kafka.topic(3)
        self.known, self.unknown = kafka.topic(2), kafka.topic(1)
        self.sent: list[int] = []
        kafka.send(self.users, [Send(json.dumps({"id": n}), str(n)) for n in range(0, 500, 5)])

    def job(self, *, delivery: str = "exactly_once", stateless: bool = False) -> hg.JobDef:
        address = f"kafka://{self.kafka.servers}/"

        @hg.job("pipe")
        def pipe(job: hg.Job) -> None:
            visits = job.source("visits", hg.topic(address + self.visits, schema=SCHEMA))
            if stateless:
                known = visits.where("id % 5 = 0")
                unknown = visits.where("id % 5 <> 0")
            else:
                users = job.table("users", hg.topic(address + self.users, schema="id BIGINT"),
                                  key="id")  # fmt: skip
                found = visits.lookup("who", users, on="id", missing="side")
                known, unknown = found, found.missing
            for name, rows, topic in (
                ("known", known, self.known), ("unknown", unknown, self.unknown)
            ):  # fmt: skip
                rows.sink(name, hg.topic(address + topic, key="id", delivery=delivery))

        return pipe

    def send(self, numbers: range) -> None:
        self.kafka.send(
            self.visits, [Send(json.dumps({"id": n, "url": f"/{n}"}), str(n)) for n in numbers]
        )
        self.sent += numbers

    def go(self, job: hg.JobDef | None = None, **options: Any) -> RunOutcome:
        outcome = run(
            job or self.job(), home=self.home, bounded=True, spark=self.spark, parallelism=3,
            **options,
        )  # fmt: skip
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def crash(self, point: str, job: hg.JobDef | None = None) -> None:
        """Run into a failure at a point of the commit of the next batch."""
        current = Home(self.home).job("pipe").current()
        jvm.arm_crash(self.spark, current.id if current else "r1", point)
        with pytest.raises(HeadgateError, match="a test asked"):
            self.go(job)

    def written(self) -> Counter[int]:
        """How often each visit is in an output; one in the wrong topic counts as -1."""
        found: Counter[int] = Counter()
        for topic, right in ((self.known, True), (self.unknown, False)):
            for record in self.kafka.read(topic):
                row = json.loads(record.value or "")
                number = row["id"]
                in_place = (number % 5 == 0 and number < 500) is right
                assert record.key == str(number) and row["url"] == f"/{number}"
                found[number if in_place else -1] += 1
        return found

    def assert_exact(self) -> None:
        assert self.written() == Counter(self.sent)


@pytest.fixture
def pipe(spark: SparkSession, tmp_path: Path, kafka: Kafka) -> Pipe:
    return Pipe(spark, tmp_path, kafka)


def test_should_write_each_row_once_over_several_starts(pipe: Pipe) -> None:
    for first in range(0, 300, 100):
        pipe.send(range(first, first + 100))
        pipe.go()
    pipe.assert_exact()


@pytest.mark.parametrize("stateless", [False, True])
def test_should_write_each_row_once_after_a_crash_at_any_point(pipe: Pipe, stateless: bool) -> None:
    job = pipe.job(stateless=stateless)
    pipe.send(range(0, 90))
    pipe.go(job)
    for number, point in enumerate((*TASK_POINTS, "before_sink", "after_sink")):
        pipe.send(range(100 + 50 * number, 140 + 50 * number))
        pipe.crash(point, job)
        pipe.go(job)
        pipe.assert_exact()


def test_should_emit_again_after_a_restore_but_not_after_a_resume(pipe: Pipe) -> None:
    for first in (0, 100, 200, 300):
        pipe.send(range(first, first + 20))
        pipe.go()
    pipe.go()
    pipe.assert_exact()
    pipe.go(restore="ck:1")
    twice = [*range(200, 220), *range(300, 320)]
    assert pipe.written() == Counter([*pipe.sent, *twice])
    pipe.go()
    assert pipe.written() == Counter([*pipe.sent, *twice]), "a resume after it writes nothing"


def test_should_let_a_fork_write_without_disturbing_the_original(pipe: Pipe) -> None:
    pipe.send(range(0, 50))
    pipe.go()
    pipe.go(name="fork", fresh=True)
    assert pipe.written() == Counter([*pipe.sent, *pipe.sent])
    pipe.send(range(50, 60))
    pipe.go()  # its producers were not fenced, its markers not touched
    assert pipe.written() == Counter([*range(50), *range(50), *range(50, 60)])


def test_should_not_take_a_new_home_for_one_whose_batches_are_out(
    pipe: Pipe, tmp_path: Path
) -> None:
    pipe.send(range(0, 40))
    pipe.go()
    pipe.home = str(tmp_path / "another")  # as after the first one was deleted: run r1 again
    pipe.go(take_over=True)
    assert pipe.written() == Counter([*pipe.sent, *pipe.sent])


def test_should_not_write_a_batch_again_when_group_offsets_have_gone(pipe: Pipe) -> None:
    pipe.send(range(0, 60))
    pipe.crash("after_sink")
    groups = [g.group_id for g in pipe.kafka.admin.list_consumer_groups().result(30).valid]
    ours = [g for g in groups if g.startswith("headgate.pipe.")]
    assert ours
    for deleted in pipe.kafka.admin.delete_consumer_groups(ours).values():
        deleted.result(30)
    pipe.go()
    pipe.assert_exact()


def test_should_end_a_transaction_that_a_dead_driver_left_open(pipe: Pipe) -> None:
    pipe.send(range(0, 40))
    pipe.go()
    dead = Producer({"bootstrap.servers": pipe.kafka.servers, "log_level": 0,
                     "transactional.id": "headgate.pipe.0.1"})  # fmt: skip
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(pipe.known, json.dumps({"id": 5, "url": "/5"}), "5")
    dead.flush()
    pipe.send(range(40, 80))
    pipe.go()
    pipe.assert_exact()
    assert (
        jvm.kafka_open_transactions(pipe.spark, {"bootstrap.servers": pipe.kafka.servers}, "pipe")
        == []
    )


def test_should_refuse_a_changed_graph_while_a_batch_is_out(pipe: Pipe) -> None:
    pipe.send(range(0, 30))
    pipe.go()
    pipe.send(range(30, 60))
    pipe.crash("after_sink")
    with pytest.raises(RefusedError, match="batch"):
        pipe.go(pipe.job(stateless=True), allow_dropped_state=True)
    pipe.go()
    pipe.assert_exact()


def test_should_write_at_least_once_when_asked(pipe: Pipe) -> None:
    job = pipe.job(delivery="at_least_once")
    pipe.send(range(0, 60))
    pipe.crash("after_sink", job)
    pipe.go(job)
    assert set(pipe.written()) == set(pipe.sent)
    assert pipe.written() == Counter([*pipe.sent, *pipe.sent]), "a replay writes again"


def sinking(pipe: Pipe, sink: hg.Sink) -> hg.JobDef:
    @hg.job("pipe")
    def job(job: hg.Job) -> None:
        visits = job.source(
            "visits", hg.topic(f"kafka://{pipe.kafka.servers}/{pipe.visits}", schema=SCHEMA)
        )
        visits.sink("known", sink)

    return job


def test_should_write_key_value_headers_and_time(pipe: Pipe) -> None:
    topic = pipe.kafka.topic(3)
    sink = hg.KafkaSink(
        pipe.kafka.servers, topic, key="url", value="IF(id = 2, NULL, concat('v', id))",
        headers="map('origin', 'test', 'id', cast(id AS STRING))",
        timestamp="timestamp_millis(1700000000000 + id)",
    )  # fmt: skip
    pipe.send(range(0, 4))
    pipe.go(sinking(pipe, sink))
    found = {r.key: (r.value, r.timestamp_ms, dict(r.headers)) for r in pipe.kafka.read(topic)}
    assert found == {
        f"/{n}": (None if n == 2 else f"v{n}", 1_700_000_000_000 + n,
                  {"origin": b"test", "id": str(n).encode()})
        for n in range(4)
    }  # fmt: skip


def test_should_put_a_key_where_other_producers_put_it(pipe: Pipe) -> None:
    ours, theirs = pipe.kafka.topic(5), pipe.kafka.topic(5)
    pipe.send(range(0, 200))
    pipe.kafka.send(theirs, [Send("x", f"/{n}") for n in range(200)])
    pipe.go(sinking(pipe, hg.KafkaSink(pipe.kafka.servers, ours, key="url")))
    places = [{r.key: r.partition for r in pipe.kafka.read(t)} for t in (ours, theirs)]
    assert places[0] == places[1] and len(places[0]) == 200


def test_should_say_that_a_record_is_too_large(pipe: Pipe) -> None:
    topic = pipe.kafka.topic(1, max_message_bytes="2000")
    pipe.send(range(0, 3))
    sink = hg.KafkaSink(pipe.kafka.servers, topic, value="repeat(url, 5000)")
    with pytest.raises(HeadgateError, match="larger than the broker takes") as failed:
        pipe.go(sinking(pipe, sink))
    assert topic in str(failed.value)
    events = Home(pipe.home).job("pipe").current().events()  # type: ignore[union-attr]
    assert [e.details["reason"] for e in events if e.kind == "failed"] == ["RECORD_TOO_LARGE"]
    assert not Reason.RECORD_TOO_LARGE.retryable
    assert pipe.kafka.read(topic) == []


def test_should_say_that_the_sink_has_no_topic(pipe: Pipe) -> None:
    with pytest.raises(NotFoundError, match="there is no topic") as missing:
        pipe.go(sinking(pipe, hg.KafkaSink(pipe.kafka.servers, "nowhere")))
    assert missing.value.step == "known"


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (hg.KafkaSink("h:1", "a/b"), "not a Kafka topic's name"),
        (hg.KafkaSink("h:1", "t", delivery="maybe"), "'delivery' is not known"),  # type: ignore[arg-type]
        (hg.KafkaSink("h:1", "t", value="id"), "record's value cannot be made of this"),
        (hg.KafkaSink("h:1", "t", headers="map(1, 'a')"), "record's headers cannot be made"),
        (hg.KafkaSink("h:1", "t", timestamp="id"), "record's timestamp cannot be made"),
        (hg.KafkaSink("h:1", "t", transaction_timeout="10 milliseconds"), "too short"),
        (hg.KafkaSink("h:1", "t", options={"transactional.id": "x"}), "set by Headgate"),
        (hg.KafkaSink("h:1", "t", options={"marker_topic": "a b"}), "marker_topic"),
        (hg.KafkaSink("h:1", "t", key="uuid()"), "another value when a batch is replayed"),
    ],
)
def test_should_say_what_is_wrong_with_a_sink(pipe: Pipe, sink: hg.Sink, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        pipe.go(sinking(pipe, sink))


def test_should_refuse_sinks_that_cannot_share_a_transaction(pipe: Pipe) -> None:
    """A changed option must not hide the markers of a batch that is out."""
    address = f"kafka://{pipe.kafka.servers}/"

    @hg.job("pipe")
    def mixed(job: hg.Job) -> None:
        rows = job.source("visits", hg.topic(address + pipe.visits, schema=SCHEMA))
        rows.sink("known", hg.topic(address + pipe.known, **{"compression.type": "lz4"}))
        rows.sink("unknown", hg.topic(address + pipe.unknown))

    with pytest.raises(GraphError, match="shares transactions") as refused:
        pipe.go(mixed)
    assert refused.value.step == "unknown"
