"""The Kafka sink: each record once, whatever crashes, on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import kernel
from tests.kernel.kafka_support import Job, Kafka


@pytest.fixture(scope="session")
def kafka(kafka_servers: str) -> Kafka:
    return Kafka(kafka_servers)


@pytest.fixture
def job(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> Job:
    kernel.need_kafka(spark)
    return Job(spark, kafka, tmp_path)


def test_should_write_each_row_to_its_topic(job: Job, kafka: Kafka) -> None:
    a, b = kafka.topic(), kafka.topic()
    job.add(range(10))
    job.run(job.two(), job.spec(a, b))
    assert kafka.ids(a) == [0, 2, 4, 6, 8]
    assert kafka.ids(b) == [1, 3, 5, 7, 9]
    assert {m["rows"] for m in kafka.markers(job.name).values()} == {3, 4}
