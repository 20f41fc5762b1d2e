"""The examples in docstrings are run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.graph.plan import Plan
from headgate.runtime import session
from headgate.runtime.run import run
from headgate.testing import JobDriver
from tests.docstring_examples import MODULES, examples_of, failures_in

WITH_SPARK = {
    "headgate.api.job",
    "headgate.api.keyed",
    "headgate.api.keyed_outputs",
    "headgate.api.stream",
    "headgate.base.errors",
    "headgate.connectors.kafka.source",
    "headgate.connectors.pulsar.source",
    "headgate.graph.model",
    "headgate.runtime.handle",
    "headgate.runtime.own_session",
    "headgate.steps.lookup.table",
    "headgate.steps.process.arrow",
    "headgate.testing.job_driver",
}
"""Modules whose examples have columns, or run a job; those of all others do without a session."""


@hg.job("store", checkpoints=hg.Checkpoints(every="100 ms"))
def store(job: hg.Job) -> None:
    address = job.param("orders", "log:orders")
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    orders = job.source("orders", hg.topic(address, schema="id BIGINT, user_id BIGINT"))
    found = orders.lookup("users_lookup", users, on="user_id", missing="side")
    found.sink("enriched", hg.topic("log:enriched"))
    found.missing.sink("unknown", hg.topic("log:unknown"))


def job_of(function: hg.Process) -> hg.JobDef:
    """A job that gives visits to a process function by their pages."""

    @hg.job("pages")
    def pages(job: hg.Job) -> None:
        visits = job.source("visits", hg.topic("log:visits", schema="page STRING"))
        made = job.process("count", function, visits=visits.key_by("page"))
        made.sink("out", hg.topic("log:out"))

    return pages


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where examples put their files."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_there_are_modules_to_look_at() -> None:
    assert "headgate.api.stream" in MODULES and "headgate.connectors.log.connector" in MODULES
    assert all(examples_of(name) for name in WITH_SPARK)


@pytest.mark.parametrize("name", [m for m in MODULES if m not in WITH_SPARK and examples_of(m)])
@pytest.mark.usefixtures("folder")
def test_examples_hold(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> SparkSession:
        raise AssertionError(f"{name} has an example that needs Spark")

    monkeypatch.setattr(session, "get_session", refused)
    assert failures_in(name) == 0


@pytest.mark.parametrize("name", sorted(WITH_SPARK))
def test_examples_with_spark_hold(
    name: str, spark: SparkSession, job_driver: Callable[..., JobDriver], folder: Path
) -> None:
    def given() -> dict[str, Any]:
        return {
            "job": hg.Job(Plan("examples", spark, {})),
            "SparkSession": SparkSession,
            "job_driver": job_driver,
            "job_of": job_of,
            "store": store,
        }

    for topic in ("users", "orders"):
        TopicFiles(folder / topic).create(1)
    if name == "headgate.runtime.handle":  # a handle has no way to wait for the first checkpoint
        TopicFiles(folder / "orders").append([Record(value='{"id": 7, "user_id": 1}', key=None)])
        assert run(store, home="home", bounded=True, spark=spark).error is None
    assert failures_in(name, given) == 0
