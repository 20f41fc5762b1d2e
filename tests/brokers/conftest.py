"""The systems that each contract of brokers is tried on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.brokers import base, kafka
from headgate.jvm.java import JavaHome, Origin
from tests.brokers.kinds import behave
from tests.brokers.systems import NAMES, KafkaSystem, PulsarSystem, System
from tests.reading import Reading


@pytest.fixture(params=NAMES)
def system(request: pytest.FixtureRequest) -> Iterator[System]:
    """The topics of Kafka, then those of Pulsar; each broker starts when it is needed."""
    if request.param == "kafka":
        yield KafkaSystem(request.getfixturevalue("kafka_servers"))
        return
    pulsar = PulsarSystem(request.getfixturevalue("pulsar_url"))
    yield pulsar
    pulsar.close()


@pytest.fixture
def reading(spark: SparkSession, tmp_path: Path) -> Reading:
    return Reading(spark, tmp_path)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that ends at once, or does what `behave` lets it do; gives its file."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    java = JavaHome(tmp_path / "java", "17.0.1", Origin.JAVA_HOME)
    monkeypatch.setattr(base, "find_java", lambda: java)
    monkeypatch.setattr(kafka, "find_java", lambda: java)
    monkeypatch.setattr(base, "fetch", lambda lock, quiet=False: [Path("broker.jar")])
    behave(program, "exit 1")
    return program
