"""assert_crash_safe: silent for a job that is exact, and loud for one that is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.testing import Deleted, assert_crash_safe

SCRIPT = [
    ("users", {"id": 7, "name": "Ann"}),
    ("orders", {"id": 1, "user_id": 7}),
    ("orders", {"id": 2, "user_id": 8}),
    ("users", {"id": 7, "name": "Anna"}),
    ("orders", {"id": 3, "user_id": 7}),
    ("users", Deleted(7)),
    ("users", {"id": 21, "name": "Bob"}),
    ("orders", {"id": 4, "user_id": 7}),
    ("orders", {"id": 5, "user_id": 21}),
]


@hg.job("safe")
def safe(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    orders = job.source("orders", hg.topic("log:orders", schema="id BIGINT, user_id BIGINT"))
    found = orders.lookup("users_lookup", users, on="user_id", take=["name"], missing="side")
    found.sink("out", hg.topic("log:out"))
    found.missing.sink("missing", hg.topic("log:missing"))


def test_a_job_that_is_exact_passes(spark: SparkSession) -> None:
    assert_crash_safe(safe, SCRIPT)


def test_a_job_that_writes_something_else_when_it_is_replayed_does_not(
    spark: SparkSession, tmp_path: Path
) -> None:
    calls = str(tmp_path / "calls")

    def counted(id: int) -> int:
        with open(calls, "a+") as file:
            file.write("x")
            return file.tell()

    @hg.job("unsafe")
    def unsafe(job: hg.Job) -> None:
        def number(column: str) -> Column:
            return F.udf(counted, "bigint")(column)

        orders = job.source("orders", hg.topic("log:orders", schema="id BIGINT, user_id BIGINT"))
        numbered = orders.transform("number", lambda df: df.withColumn("n", number("id")))
        numbered.sink("out", hg.topic("log:out"))

    script = [step for step in SCRIPT if step[0] == "orders"]
    with pytest.raises(AssertionError, match=r"a crash at .* changes the rows of out"):
        assert_crash_safe(unsafe, script)
