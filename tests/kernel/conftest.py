"""Fixtures of the kernel's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate import jvm
from tests.kernel.kafka_support import Job, Kafka


@pytest.fixture(scope="session")
def kafka(kafka_servers: str) -> Kafka:
    """The broker of the headgate plugin."""
    return Kafka(kafka_servers)


@pytest.fixture
def job(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> Job:
    """A job with ids 0 to 9 waiting in its source."""
    jvm.need_kafka(spark)
    made = Job(spark, kafka, tmp_path)
    made.add(range(10))
    return made
