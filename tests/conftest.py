"""Fixtures that all tests share, and how the JVMs of tests start."""

from __future__ import annotations

import os

import pytest
from pyspark.sql import SparkSession

# The JVMs of tests live for seconds: the second compiler costs them more than it gains. Drivers
# that tests start inherit this; a JVM of a user has both compilers, and so do the benchmarks.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


@pytest.fixture(scope="session")
def spark(headgate_spark: SparkSession) -> SparkSession:
    """The session of the headgate plugin."""
    return headgate_spark
