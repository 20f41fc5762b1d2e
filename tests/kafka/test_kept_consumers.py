"""Tasks read Kafka with consumers that are kept: the rows are those of Spark's own reader."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

import headgate as hg
from tests.kafka.client import Kafka, Read, Send
from tests.reading import Reading, Running

SETTING = "spark.headgate.kafka.keep.consumers"
PARTITIONS = 3


@pytest.fixture
def kafka(kafka_servers: str) -> Kafka:
    return Kafka(kafka_servers, calm=True)


@pytest.fixture
def inside(spark: SparkSession) -> Any:
    """The kernel's package of Kafka sources."""
    return spark._jvm.org.apache.spark.sql.headgate.sources.kafka  # type: ignore[union-attr]


@pytest.fixture
def sparks_reader(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(SETTING, "false")
    yield
    spark.conf.unset(SETTING)


def fill(kafka: Kafka, topic: str) -> None:
    """Plain records with headers, and transactions of which some are rolled back."""
    chosen = random.Random(18)
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": topic})
    producer.init_transactions(30)
    number = 0
    for turn in range(12):
        if turn % 3 == 0:
            plain = [
                Send(
                    json.dumps({"id": number + n}),
                    None if n % 4 == 0 else f"k{n}",
                    chosen.randrange(PARTITIONS),
                    1_700_000_000_000 + n,
                    () if n % 2 else (("h", b"1"), ("none", None)),
                )
                for n in range(9)
            ]
            kafka.send(topic, plain)
        else:
            producer.begin_transaction()
            for n in range(9):
                producer.produce(
                    topic, json.dumps({"id": number + n}), partition=chosen.randrange(PARTITIONS)
                )
            producer.flush()
            (producer.commit_transaction if turn % 3 == 1 else producer.abort_transaction)(30)
        number += 9


def row(record: Read) -> dict[str, Any]:
    """What the job makes of a record; absent fields are null."""
    found = {
        "id": json.loads(record.value or "")["id"],
        "key": record.key,
        "partition": record.partition,
        "offset": record.offset,
        "ms": record.timestamp_ms,
        "headers": [
            {"key": name} | ({} if value is None else {"value": base64.b64encode(value).decode()})
            for name, value in record.headers
        ]
        or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def read(kafka: Kafka, spark: SparkSession, topic: str, folder: Path) -> list[dict[str, Any]]:
    source = hg.KafkaSource(
        kafka.servers, topic, "id BIGINT", options={"max_records": "7"},
        metadata="key, partition, offset, timestamp AS at, headers",
    )  # fmt: skip
    reading = Reading(spark, folder)

    @hg.job("reading")
    def job(job: hg.Job) -> None:
        rows = job.source("in", source)
        kept = rows.select("id", "key", "partition", "offset", "unix_millis(at) AS ms", "headers")
        kept.sink("out", hg.LogSink(str(folder / "out")))

    reading.run(job)
    assert len(reading.checkpoints()) > 8
    return sorted(reading.rows(), key=lambda found: (found["partition"], found["offset"]))


def test_should_read_small_batches_and_keep_its_consumers(
    kafka: Kafka, spark: SparkSession, tmp_path: Path, inside: Any
) -> None:
    topic = kafka.topic(PARTITIONS)
    fill(kafka, topic)
    made, handed = inside.TopicCursors.made(), inside.TopicReader.handedOver()
    found = read(kafka, spark, topic, tmp_path)
    assert found == [row(record) for record in kafka.read(topic)]
    assert len(found) == 8 * 9
    # one for each partition, however many batches there are
    assert inside.TopicCursors.made() == made + PARTITIONS
    assert inside.TopicReader.handedOver() == handed


@pytest.mark.usefixtures("sparks_reader")
def test_should_leave_reading_to_spark_if_told_so(
    kafka: Kafka, spark: SparkSession, tmp_path: Path, inside: Any
) -> None:
    topic = kafka.topic(PARTITIONS)
    fill(kafka, topic)
    made = inside.TopicCursors.made()
    assert read(kafka, spark, topic, tmp_path) == [row(record) for record in kafka.read(topic)]
    assert inside.TopicCursors.made() == made


@pytest.mark.parametrize("on_data_loss", ["fail", "continue"])
def test_should_notice_records_that_go_while_the_job_runs(
    kafka: Kafka, spark: SparkSession, tmp_path: Path, inside: Any, on_data_loss: str
) -> None:
    def send(numbers: range) -> None:
        kafka.send(topic, [Send(json.dumps({"id": n})) for n in numbers])

    reading, topic = Reading(spark, tmp_path), kafka.topic(1)
    send(range(10))
    handed = inside.TopicReader.handedOver()
    source = hg.topic(
        f"kafka://{kafka.servers}/{topic}", schema="id BIGINT", on_data_loss=on_data_loss
    )
    job = Running(reading, source, every="1 hour", restart=hg.no_restart())
    try:
        job.until(lambda: len(reading.rows()) == 10)
        send(range(10, 30))
        kafka.delete_before(topic, 0, 20)
        job.trigger()
        job.until(lambda: job.ended or len(reading.rows()) > 10)
    finally:
        ended = job.stop()
    assert inside.TopicReader.handedOver() == handed + 1
    if on_data_loss == "fail":
        assert "gone from the topic" in str(ended.error)
        assert reading.ids() == list(range(10))
    else:
        assert ended.error is None
        assert reading.ids() == [*range(10), *range(20, 30)]
