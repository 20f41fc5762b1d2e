"""What all tests on a Pulsar broker need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pulsar.client import Pulsar
from tests.reading import Reading


@pytest.fixture
def pulsar(pulsar_url: str) -> Iterator[Pulsar]:
    client = Pulsar(pulsar_url)
    yield client
    client.close()


@pytest.fixture
def reading(spark: SparkSession, tmp_path: Path) -> Reading:
    return Reading(spark, tmp_path)
