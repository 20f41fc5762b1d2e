"""Fixtures that all tests share."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(headgate_spark: SparkSession) -> SparkSession:
    """The session of the headgate plugin."""
    return headgate_spark
