"""Fixtures that all tests share, the order of tests, and how their processes run."""

from __future__ import annotations

import gc
import os

import pytest
from pyspark.sql import SparkSession

from headgate.jvm.class_archive import VARIABLE, Use
from headgate.jvm.launch import FIRST_COMPILER
from tests.order import ordered

# Drivers that tests start inherit these. `make test` has made the archive of classes. The second is
# for Spark's own JVM, the third for the one that Spark may run before it, to write its command.
os.environ.setdefault(VARIABLE, Use.USE)
os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(FIRST_COMPILER))
os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# What is made while tests are collected stays: to look through it again and again frees nothing.
gc.disable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests that are left, after marks and names have been looked at, in order."""
    worker = getattr(config, "workerinput", {})
    items[:] = ordered(items, int(worker.get("workercount", 1)))
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def spark(headgate_spark: SparkSession) -> SparkSession:
    """The session of the headgate plugin."""
    return headgate_spark
