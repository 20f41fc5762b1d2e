"""Jobs that write Pulsar: each row once after crashes, again after a restore, never by a fork."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import GraphError, HeadgateError, NotFoundError, RefusedError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.connectors.pulsar.names import PulsarTopicName
from headgate.failures import Reason
from headgate.home.layout import Home
from headgate.runtime.live import SilentDisplay
from headgate.runtime.run import RunOutcome, run
from tests.pulsar.client import Pulsar

SCHEMA = "id BIGINT, url STRING"
TASK_POINTS = ("before_transaction", "in_transaction", "after_transaction")


class Pipe:
    """A stateful job to two Pulsar topics: known keys to one, the others to the other."""

    def __init__(self, spark: SparkSession, folder: Path, pulsar: Pulsar) -> None:
        self.spark, self.pulsar, self.home = spark, pulsar, str(folder / "home")
        self.users, self.visits = TopicFiles(folder / "users"), TopicFiles(folder / "visits")
        self.users.create(2)
        self.visits.create(3)
        self.users.append([Record(json.dumps({"id": n}), str(n)) for n in range(0, 500, 5)])
        self.known, self.unknown = pulsar.topic(2), pulsar.topic(1)
        self.sent: list[int] = []

    def job(self, *, stateless: bool = False, **options: str) -> hg.JobDef:
        @hg.job("pipe")
        def pipe(job: hg.Job) -> None:
            visits = job.source("visits", hg.topic(f"log:{self.visits.path}", schema=SCHEMA))
            if stateless:
                known = visits.where("id % 5 = 0")
                unknown = visits.where("id % 5 <> 0")
            else:
                users = job.table(
                    "users", hg.topic(f"log:{self.users.path}", schema="id BIGINT"), key="id"
                )
                found = visits.lookup("who", users, on="id", missing="side")
                known, unknown = found, found.missing
            for name, rows, topic in (
                ("known", known, self.known), ("unknown", unknown, self.unknown)
            ):  # fmt: skip
                address = f"{self.pulsar.url}/{topic}"
                rows.sink(name, hg.topic(address, key="id", order_by="id", **options))

        return pipe

    def sinking(self, *sinks: hg.Sink, schema: str = SCHEMA) -> hg.JobDef:
        """All visits to these sinks."""

        @hg.job("pipe")
        def job(job: hg.Job) -> None:
            visits = job.source("visits", hg.topic(f"log:{self.visits.path}", schema=schema))
            for number, sink in enumerate(sinks):
                visits.sink(f"out{number}", sink)

        return job

    def sink(self, topic: str, **parts: Any) -> hg.PulsarSink:
        return hg.PulsarSink(self.pulsar.url, topic, **parts)

    def send(self, numbers: range) -> None:
        self.visits.append([Record(json.dumps({"id": n, "url": f"/{n}"}), str(n)) for n in numbers])
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
            for message in self.pulsar.read(topic):
                row = json.loads(message.value or "")
                number = row["id"]
                in_place = (number % 5 == 0 and number < 500) is right
                assert message.key == str(number) and row["url"] == f"/{number}"
                found[number if in_place else -1] += 1
        return found

    def assert_exact(self) -> None:
        assert self.written() == Counter(self.sent)


@pytest.fixture(scope="module")
def pulsar(pulsar_url: str) -> Pulsar:
    return Pulsar(pulsar_url)


@pytest.fixture
def pipe(spark: SparkSession, tmp_path: Path, pulsar: Pulsar) -> Pipe:
    return Pipe(spark, tmp_path, pulsar)


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


def test_should_let_a_fork_write_without_disturbing_the_original(
    pipe: Pipe, tmp_path: Path
) -> None:
    pipe.send(range(0, 50))
    pipe.go()
    pipe.go(name="fork", fresh=True)
    assert pipe.written() == Counter([*pipe.sent, *pipe.sent])
    pipe.home = str(tmp_path / "another")  # as after the first one was deleted: run r1 again
    with pytest.raises(RefusedError, match="of another home"):
        pipe.go()
    pipe.go(take_over=True)
    assert pipe.written() == Counter([*pipe.sent, *pipe.sent, *pipe.sent])


def test_should_refuse_a_home_that_is_older_than_its_topics(pipe: Pipe, tmp_path: Path) -> None:
    pipe.send(range(0, 30))
    pipe.go()
    shutil.copytree(pipe.home, tmp_path / "backup", symlinks=True)
    for first in (30, 60):
        pipe.send(range(first, first + 30))
        pipe.go()
    shutil.rmtree(pipe.home)
    (tmp_path / "backup").rename(pipe.home)
    pipe.send(range(90, 120))
    with pytest.raises(RefusedError, match="batch 2 of run r1, but the home is at ck:0") as refused:
        pipe.go()
    assert "--fresh" in str(refused.value)
    assert "--accept-sink-position" not in str(refused.value), "the broker knows numbers alone"
    assert pipe.written() == Counter(range(90))


def test_should_refuse_a_changed_graph_while_a_batch_is_out(pipe: Pipe) -> None:
    pipe.send(range(0, 30))
    pipe.go()
    pipe.send(range(30, 60))
    pipe.crash("after_sink")
    with pytest.raises(RefusedError, match="batch 1 of run r1 is out"):
        pipe.go(pipe.job(stateless=True), allow_dropped_state=True)
    pipe.go()
    pipe.assert_exact()


def test_should_switch_deduplication_on_and_say_so(pipe: Pipe) -> None:
    topic = pipe.pulsar.topic(3, deduplication=False)
    job = pipe.sinking(pipe.sink(topic, key="id"))
    said: list[str] = []
    display = SilentDisplay()
    display.say = said.append  # type: ignore[method-assign]
    pipe.send(range(0, 20))
    pipe.go(job, display=display)
    changed = f"deduplication was off and is on now for {pipe.pulsar.url}/{topic}"
    assert len([text for text in said if changed in text]) == 1
    assert pipe.pulsar.admin.deduplication(PulsarTopicName.parse(topic)) is True
    pipe.send(range(20, 40))
    pipe.crash("after_sink", job)
    said.clear()
    pipe.go(job, display=display)
    assert said and not any("deduplication" in text for text in said)
    assert pipe.pulsar.ids(topic) == pipe.sent


def test_should_refuse_when_deduplication_cannot_be_looked_into(pipe: Pipe) -> None:
    pipe.send(range(0, 4))
    elsewhere = {"admin_url": "http://127.0.0.1:1"}
    with pytest.raises(HeadgateError, match="drops duplicates cannot be found out") as refused:
        pipe.go(pipe.sinking(pipe.sink(pipe.known, options=elsewhere)))
    assert refused.value.step == "out0"
    assert "at_least_once" in str(refused.value) and "admin_url" in str(refused.value)
    pipe.go(pipe.sinking(pipe.sink(pipe.known, options=elsewhere, delivery="at_least_once")))
    assert pipe.pulsar.ids(pipe.known) == [0, 1, 2, 3]


def test_should_write_at_least_once_when_asked(pipe: Pipe) -> None:
    job = pipe.job(delivery="at_least_once")
    pipe.send(range(0, 60))
    pipe.crash("after_sink", job)
    pipe.go(job)
    assert pipe.written() == Counter([*pipe.sent, *pipe.sent]), "a replay writes again"


def test_should_write_key_value_properties_and_time(pipe: Pipe) -> None:
    topic = pipe.pulsar.topic(3)
    sink = pipe.sink(
        topic, key="url", value="IF(id = 2, NULL, concat('v', id))",
        properties="map('origin', 'test', 'id', cast(id AS STRING))",
        event_time="timestamp_millis(1700000000000 + id)",
    )  # fmt: skip
    pipe.send(range(0, 4))
    pipe.go(pipe.sinking(sink))
    found = {m.key: (m.value, m.event_ms, m.properties) for m in pipe.pulsar.read(topic)}
    assert found == {
        f"/{n}": (None if n == 2 else f"v{n}", 1_700_000_000_000 + n,
                  (("id", str(n)), ("origin", "test")))
        for n in range(4)
    }  # fmt: skip


def test_should_send_messages_of_a_key_in_the_order_that_is_asked_for(pipe: Pipe) -> None:
    down, up = pipe.pulsar.topic(2), pipe.pulsar.topic(2)
    pipe.send(range(0, 60))
    key = "CAST(id % 3 AS STRING)"
    pipe.go(pipe.sinking(pipe.sink(down, key=key, order_by="-id"), pipe.sink(up, key=key)))
    for topic, backwards in ((down, True), (up, False)):
        ids: dict[str | None, list[int]] = {}
        for message in pipe.pulsar.read(topic):
            ids.setdefault(message.key, []).append(json.loads(message.value or "")["id"])
        assert {len(found) for found in ids.values()} == {20}
        assert all(found == sorted(found, reverse=backwards) for found in ids.values())


def test_should_keep_the_order_of_other_sinks(pipe: Pipe, tmp_path: Path) -> None:
    """Sorting is for Pulsar alone: a log topic gets its rows as they come."""
    ids = [(n * 7919) % 1000 for n in range(300)]
    pipe.visits.append([Record(json.dumps({"id": n, "url": "/"}), "k") for n in ids])
    log = hg.LogSink(str(tmp_path / "log"), "url")
    pipe.go(pipe.sinking(log, pipe.sink(pipe.unknown, key="url")))
    written = [json.loads(r.value or "")["id"] for r in TopicFiles(tmp_path / "log").read()]
    assert written == ids
    messages = pipe.pulsar.read(pipe.unknown)
    assert [json.loads(m.value or "")["id"] for m in messages] == sorted(ids)


def test_should_say_that_a_record_is_too_large(pipe: Pipe) -> None:
    pipe.send(range(0, 3))
    with pytest.raises(HeadgateError, match="larger than the broker takes") as failed:
        pipe.go(pipe.sinking(pipe.sink(pipe.known, value="repeat('x', 6000000)")))
    assert pipe.known in str(failed.value)
    events = Home(pipe.home).job("pipe").current().events()  # type: ignore[union-attr]
    assert [e.details["reason"] for e in events if e.kind == "failed"] == ["RECORD_TOO_LARGE"]
    assert not Reason.RECORD_TOO_LARGE.retryable
    assert pipe.pulsar.read(pipe.known) == []


def test_should_say_that_the_sink_has_no_topic(pipe: Pipe) -> None:
    with pytest.raises(NotFoundError, match="there is no topic") as missing:
        pipe.go(pipe.sinking(pipe.sink("nowhere")))
    assert missing.value.step == "out0"
    assert "headgate topic create" in str(missing.value)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"topic": "a/b"}, "not a Pulsar topic's name"),
        ({"url": "pulsar://h"}, "not the address of a Pulsar service"),
        ({"delivery": "maybe"}, "'delivery' is not known"),
        ({"value": "id"}, "record's value cannot be made of this"),
        ({"properties": "map(1, 'a')"}, "record's properties cannot be made"),
        ({"event_time": "id"}, "record's event_time cannot be made"),
        ({"order_by": "map('a', id)"}, "record's order_by cannot be made"),
        ({"options": {"sendTimeout": "1"}}, "has no option 'sendTimeout'"),
        ({"key": "uuid()"}, "another value when a batch is replayed"),
    ],
)
def test_should_say_what_is_wrong_with_a_sink(
    pipe: Pipe, parts: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(GraphError, match=said):
        pipe.go(pipe.sinking(hg.PulsarSink(**{"url": "pulsar://h:1", "topic": "t", **parts})))


def test_should_refuse_rows_that_cannot_be_sorted(pipe: Pipe) -> None:
    schema = "id BIGINT, more ARRAY<STRUCT<tags: MAP<STRING, STRING>>>"
    with pytest.raises(GraphError, match="'more' is or has a MAP") as refused:
        pipe.go(pipe.sinking(pipe.sink(pipe.known), schema=schema))
    assert refused.value.step == "out0" and "value=to_json" in str(refused.value)
    pipe.send(range(0, 4))
    pipe.go(pipe.sinking(pipe.sink(pipe.known, value="to_json(struct(*))"), schema=schema))
    assert pipe.pulsar.ids(pipe.known) == [0, 1, 2, 3]
