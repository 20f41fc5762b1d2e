"""Homes older than their Kafka topics, second homes, and settings changed after a crash."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import HeadgateError, RefusedError
from headgate.home.layout import Home
from headgate.runtime.run import RunOutcome, run
from tests.kafka.client import Kafka, Send


class Copying:
    """A job that copies a Kafka topic to another one."""

    def __init__(self, spark: SparkSession, folder: Path, kafka: Kafka) -> None:
        self.spark, self.folder, self.kafka = spark, folder, kafka
        self.home = folder / "home"
        self.source, self.out, self.sent = kafka.topic(2), kafka.topic(2), 0

    def send(self, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        self.kafka.send(self.source, [Send(json.dumps({"n": n}), str(n)) for n in numbers])
        self.sent += count

    def job(
        self, *, servers: str | None = None, restart: hg.Restart | None = None, **sink: Any
    ) -> hg.JobDef:
        address = f"kafka://{servers or self.kafka.servers}"

        @hg.job("moved", restart=restart or hg.no_restart())
        def moved(job: hg.Job) -> None:
            rows = job.source("in", hg.topic(f"{address}/{self.source}", schema="n BIGINT"))
            rows.sink("out", hg.topic(f"{address}/{self.out}", key="n", **sink))

        return moved

    def go(self, job: hg.JobDef | None = None, **options: Any) -> RunOutcome:
        given: dict[str, Any] = {"spark": self.spark, "parallelism": 2, **options}
        outcome = run(job or self.job(), home=str(self.home), bounded=True, **given)
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def crash(self, point: str) -> None:
        jvm.arm_crash(self.spark, "r1", point)
        with pytest.raises(HeadgateError, match="a test requested"):
            self.go()

    def batches(self, *counts: int) -> None:
        for count in counts:
            self.send(count)
            self.go()

    def keep(self) -> None:
        shutil.copytree(self.home, self.folder / "backup", symlinks=True)

    def restore(self) -> None:
        shutil.rmtree(self.home)
        shutil.copytree(self.folder / "backup", self.home, symlinks=True)

    def forget_groups(self) -> None:
        """As after the offsets of the tasks' groups have expired."""
        groups = self.kafka.admin.list_consumer_groups().result(30).valid
        ours = [g.group_id for g in groups if g.group_id.startswith("headgate.moved.")]
        assert ours
        for deleted in self.kafka.admin.delete_consumer_groups(ours).values():
            deleted.result(30)

    def written(self) -> Counter[int]:
        return Counter(json.loads(r.value or "")["n"] for r in self.kafka.read(self.out))

    def assert_exact(self, *more: int) -> None:
        assert self.written() == Counter([*range(self.sent), *more])


@pytest.fixture
def copying(spark: SparkSession, tmp_path: Path, kafka_servers: str) -> Copying:
    return Copying(spark, tmp_path, Kafka(kafka_servers, calm=True))


def test_should_refuse_a_home_that_is_older_than_its_topics(copying: Copying) -> None:
    copying.batches(20)
    copying.keep()
    copying.batches(20, 20)
    copying.restore()
    copying.send(30)
    with pytest.raises(RefusedError, match="batch 2 of run r1, but the home is at ck:0") as refused:
        copying.go()
    assert "--accept-sink-position" in str(refused.value)
    assert copying.written() == Counter(range(60)), "nothing was read or written"
    copying.go(accept_sink_position=True)
    copying.assert_exact()
    copying.batches(10)
    copying.assert_exact()


def test_should_see_a_restored_home_when_group_offsets_have_gone(copying: Copying) -> None:
    copying.batches(20)
    copying.keep()
    copying.batches(20)
    copying.restore()
    copying.forget_groups()
    with pytest.raises(RefusedError, match="older than its sinks"):
        copying.go()


def test_should_replay_the_batch_that_a_restored_home_was_in_the_middle_of(
    copying: Copying,
) -> None:
    copying.batches(20)
    copying.send(20)
    copying.crash("after_transaction")
    copying.keep()
    copying.restore()
    copying.go()
    copying.assert_exact()


def test_should_take_markers_of_the_version_before_as_it_did(copying: Copying) -> None:
    copying.batches(20)
    copying.send(20)
    copying.crash("after_sink")
    uid = Home(copying.home).job("moved").run("r1").read().uid
    old = []
    for record in copying.kafka.read("headgate-markers"):
        if record.key is not None and record.key.startswith(f"moved/r1-{uid}/"):
            found = json.loads(record.value or "")
            assert found["fingerprint"] and found["offsets"], "there is something to take away"
            kept = {name: found[name] for name in ("version", "batch", "rows")}
            old.append(Send(json.dumps(kept), record.key, record.partition))
    assert len(old) == 4, "two tasks, two batches"
    copying.kafka.send("headgate-markers", old)
    copying.forget_groups()
    copying.go()
    copying.assert_exact()
    copying.batches(10)
    copying.assert_exact()


@pytest.mark.slow
def test_should_refuse_a_second_home_and_stop_the_one_that_was_taken_over(
    copying: Copying,
) -> None:
    copying.send(20)
    often = hg.fixed_delay(attempts=50, delay="100 ms")
    first = hg.start(copying.job(restart=often), spark=copying.spark, home=str(copying.home))
    try:
        until = time.monotonic() + 60
        while sum(copying.written().values()) < 20:
            assert time.monotonic() < until and first.running
            time.sleep(0.1)
        # Spark knows the queries of a session by their names
        other = copying.spark.newSession()
        old, copying.home = copying.home, copying.folder / "second"
        with pytest.raises(RefusedError, match="of another home") as refused:
            copying.go(spark=other)
        assert str(old) in str(refused.value)
        assert copying.written() == Counter(range(20)), "the first one goes on undisturbed"
        copying.go(spark=other, take_over=True)
        assert copying.written() == Counter([*range(20), *range(20)])
        copying.send(10)
        with pytest.raises(HeadgateError, match="in a different home writes there"):
            first.wait(timeout="60 seconds")
        assert not any(n >= 20 for n in copying.written()), "the first one has lost its topics"
    finally:
        if first.running:
            first.stop(savepoint=False)
    copying.home = old
    with pytest.raises(RefusedError, match="--take-over"):
        copying.go()


def test_should_refuse_a_changed_setting_while_a_batch_is_out(copying: Copying) -> None:
    copying.send(20)
    copying.crash("after_sink")
    changes: dict[str, dict[str, Any]] = {
        "delivery at_least_once, and had exactly_once": {"delivery": "at_least_once"},
        "marker_topic other, and had headgate-markers": {"marker_topic": "other"},
        "the option compression.type lz4, and had none": {"compression.type": "lz4"},
    }
    for said, changed in changes.items():
        with pytest.raises(RefusedError, match=r"is out \(out\) but not committed") as refused:
            copying.go(copying.job(**changed))
        assert said in str(refused.value)
    copying.go()
    copying.assert_exact()
    copying.send(10)
    copying.go(copying.job(marker_topic="other"))  # no batch is out now
    copying.assert_exact()


def test_should_know_a_cluster_by_its_id(copying: Copying) -> None:
    copying.send(20)
    copying.crash("after_sink")
    port = copying.kafka.servers.rpartition(":")[2]
    listed = f"{copying.kafka.servers},localhost:{port}"
    copying.go(copying.job(servers=listed))
    copying.assert_exact()
    assert [r.id for r in Home(copying.home).job("moved").runs()] == ["r1"]
