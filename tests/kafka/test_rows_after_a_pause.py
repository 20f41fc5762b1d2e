"""Records that come to an idle job are taken as they come, and nothing else begins a batch."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

import headgate as hg
from headgate.home.layout import Home
from tests.kafka.client import Kafka, Send

IDLE_LOOK = "spark.headgate.idle.look.ms"


class Copying:
    """A job that copies two topics into one, looks all the time, and has an interval of an hour."""

    def __init__(self, spark: SparkSession, kafka: Kafka, home: Path) -> None:
        self._kafka, self.sources, self._sink = (
            kafka,
            (kafka.topic(2), kafka.topic(2)),
            kafka.topic(1),
        )
        address, (first, second), sink = f"kafka://{kafka.servers}/", self.sources, self._sink

        @hg.job("copy", checkpoints=hg.Checkpoints(every="1 hour"))
        def copy(job: hg.Job) -> None:
            rows = job.source("first", hg.topic(address + first, schema="id BIGINT"))
            others = job.source("second", hg.topic(address + second, schema="id BIGINT"))
            rows.union(others).sink("copies", hg.topic(address + sink, key="id"))

        self._home = Home(str(home))
        self._handle = hg.start(copy, spark=spark, home=str(home))
        # Spark runs a first batch to write down where reading begins
        until(lambda: self.batches() == 1)

    def copies(self) -> int:
        return len(self._kafka.read(self._sink))

    def batches(self) -> int:
        current = self._home.job("copy").current()
        return len(current.checkpoints()) if current is not None else 0

    def stop(self) -> None:
        self._handle.stop()


@pytest.fixture
def kafka(kafka_servers: str) -> Kafka:
    return Kafka(kafka_servers, calm=True)


@pytest.fixture
def job(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> Iterator[Copying]:
    spark.conf.set(IDLE_LOOK, "10")
    made = Copying(spark, kafka, tmp_path / "home")
    yield made
    made.stop()
    spark.conf.unset(IDLE_LOOK)


def test_records_of_any_source_do_not_wait_for_the_end_of_the_interval(
    job: Copying, kafka: Kafka
) -> None:
    kafka.send(job.sources[1], [Send('{"id": 1}', partition=1)])
    until(lambda: job.batches() == 2)
    assert job.copies() == 1
    kafka.send(job.sources[0], [Send('{"id": 2}')])
    time.sleep(1)  # dozens of looks
    assert job.batches() == 2, "the interval counts from the last batch with rows"


def test_records_that_nobody_may_read_begin_no_batch(job: Copying, kafka: Kafka) -> None:
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(job.sources[0], '{"id": 1}', partition=0)
    producer.flush()
    time.sleep(1)  # dozens of looks
    assert job.batches() == 1, "the transaction is open"
    producer.abort_transaction(30)
    time.sleep(1)
    assert job.batches() == 1, "the transaction was rolled back"
    producer.begin_transaction()
    producer.produce(job.sources[0], '{"id": 2}', partition=0)
    producer.commit_transaction(30)
    until(lambda: job.batches() == 2)
    assert job.copies() == 1


def until(met: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not met():
        assert time.monotonic() < end, "not met in time"
        time.sleep(0.02)
