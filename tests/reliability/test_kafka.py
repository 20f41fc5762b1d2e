"""The store job from Kafka to Kafka, with real kills of the driver and of the broker."""

from __future__ import annotations

import os
import random
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import jvm
from headgate.brokers import KafkaBroker, PulsarBroker
from headgate.home.layout import Home
from tests.kafka.client import Kafka
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.test_driver_kills import (
    STORE,
    assert_truth,
    checkpoints,
    finish,
    work_a_while,
)
from tests.reliability.topics import OUTPUTS, KafkaTopics


@pytest.fixture
def store(kafka_servers: str) -> KafkaTopics:
    return KafkaTopics(kafka_servers, f"{uuid.uuid4().hex[:8]}-")


def assert_no_open_transaction(spark: SparkSession, store: KafkaTopics) -> None:
    jvm.need_kafka(spark)
    client = {"bootstrap.servers": store.servers}
    assert jvm.kafka_open_transactions(spark, client, "store") == []
    kafka = Kafka(store.servers)
    for name in OUTPUTS:  # a transaction that is open holds careful readers back
        topic = store.prefix + name
        assert kafka.ends(topic) == kafka.ends(topic, committed=False)


def kill(broker: KafkaBroker | PulsarBroker) -> None:
    """kill -9 of the broker's process."""
    record = broker.status().record
    assert record is not None and record.process is not None
    os.kill(record.process.pid, signal.SIGKILL)
    while record.alive:
        time.sleep(0.05)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[KafkaBroker]:
    with KafkaBroker(tmp_path / "kafka") as broker:
        yield broker


# The short one leaves a transaction open. Batches that are out and not committed are in
# brokers/test_sinks.py, in one process.
@pytest.mark.parametrize(
    "points",
    [
        pytest.param((None, "in_transaction"), marks=pytest.mark.slow),
        pytest.param((None, "after_sink", "in_transaction"), marks=pytest.mark.long),
    ],
    ids=["short", "whole"],
)
def test_rows_and_state_are_exact_when_driver_and_broker_are_killed(
    spark: SparkSession, tmp_path: Path, broker: KafkaBroker, points: tuple[str | None, ...]
) -> None:
    store, home = KafkaTopics(broker.servers, ""), tmp_path / "home"
    seed = random.SystemRandom().randrange(1 << 30)
    moments = random.Random(seed)
    producer = Producer(store, orders=12_000, chunks=40, seed=7, taken=lambda: checkpoints(home))
    producer.start()
    for point in points:
        before = checkpoints(home)
        env = {"HEADGATE_HALT": f"{point}:{before + 1}"} if point else {}
        driver = Driver(STORE, store, home, env=env)
        if point:
            assert driver.wait(180) == 1, driver.text()[-3000:]
        else:
            assert work_a_while(driver, home, 1, moments.uniform(0, 4))
            driver.kill()
    driver = Driver(STORE, store, home)
    assert work_a_while(driver, home, 1, moments.uniform(0, 2))
    kill(broker)
    time.sleep(3)
    broker.start(quiet=True)
    assert work_a_while(driver, home, 1, 0), "the job goes on by itself"
    driver.kill()
    producer.finish()
    finish(STORE, store, home)
    print(f"{len(points) + 1} deaths of the driver, 1 kill of the broker, seed {seed}")
    assert_truth(spark, store, home, 12_000)
    assert_no_open_transaction(spark, store)


@pytest.mark.long
def test_a_driver_that_was_frozen_past_its_lease_adds_nothing_to_a_topic(
    spark: SparkSession, tmp_path: Path, store: KafkaTopics
) -> None:
    home = tmp_path / "home"
    producer = Producer(store, orders=20_000, chunks=4, seed=6, taken=lambda: checkpoints(home))
    producer.start()
    frozen = Driver(STORE, store, home)
    assert work_a_while(frozen, home, 2, 0), frozen.text()[-3000:]
    os.killpg(frozen.process.pid, signal.SIGSTOP)  # its JVM is in the same group
    producer.finish()
    lease = Home(str(home)).job("store").read().lease
    assert lease is not None
    time.sleep(lease.ttl_seconds + 1)
    finish(STORE, store, home)
    assert_truth(spark, store, home, 20_000)

    more = Producer(store, orders=2_000, chunks=1, seed=8, fresh=False)
    more.write_all()  # something that the frozen driver would like to read
    kafka = Kafka(store.servers)
    before = {name: kafka.ends(store.prefix + name) for name in OUTPUTS}
    os.killpg(frozen.process.pid, signal.SIGCONT)
    assert frozen.wait(120) == 1, frozen.text()[-3000:]
    assert {name: kafka.ends(store.prefix + name) for name in OUTPUTS} == before
    finish(STORE, store, home)
    assert_truth(spark, store, home, 22_000)
    assert_no_open_transaction(spark, store)


@pytest.mark.long
def test_a_batch_is_not_written_again_when_its_group_offsets_have_expired(
    spark: SparkSession, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    soon = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "1000"}
    with KafkaBroker(tmp_path / "kafka", settings=soon) as broker:
        store = KafkaTopics(broker.servers, "")
        Producer(store, orders=5_000, chunks=1, seed=9).write_all()
        driver = Driver(STORE, store, home, "--bounded", env={"HEADGATE_HALT": "after_sink:0"})
        assert driver.wait(180) == 1, driver.text()[-3000:]
        kafka = Kafka(broker.servers)

        def groups() -> list[str]:
            found = kafka.admin.list_consumer_groups().result(30).valid
            return [g.group_id for g in found if g.group_id.startswith("headgate.store.")]

        assert groups(), "the batch's marker is there"
        until = time.monotonic() + 180
        while groups():
            assert time.monotonic() < until, "the group offsets do not expire"
            time.sleep(1)
        finish(STORE, store, home)
        assert_truth(spark, store, home, 5_000)
