"""Operator ids: the same number in Python and in the kernel, and no two steps under one."""

from __future__ import annotations

import hashlib

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import GraphError
from headgate.graph import operator_id


def test_the_kernel_makes_the_same_number(spark: SparkSession) -> None:
    kernel = spark._jvm.org.apache.spark.sql.headgate.api.StateApi  # type: ignore[union-attr]
    for name in ("users_lookup", "a", "Zoë".encode().hex(), "x" * 100):
        number = operator_id(name)
        assert kernel.operatorId(name) == number
        assert 1 << 30 <= number < 1 << 31, "above Spark's own ids, and an Int for its state reader"


def test_steps_whose_state_would_collide_are_refused(spark: SparkSession) -> None:
    seen: dict[int, str] = {}
    first = second = ""
    for n in range(1_000_000):
        # names that differ in a few letters never collide in a CRC, so take unlike ones
        name = "s" + hashlib.sha256(str(n).encode()).hexdigest()[:16]
        if operator_id(name) in seen:
            first, second = seen[operator_id(name)], name
            break
        seen[operator_id(name)] = name
    assert first and second

    @hg.job("collision")
    def collision(job: hg.Job) -> None:
        table = job.table("t", hg.topic("log:t", schema="id BIGINT"), key="id")
        stream = job.source("s", hg.topic("log:s", schema="id BIGINT"))
        one = stream.lookup(first, table, on="id")
        one.lookup(second, table, on="id", into="again").sink("out", hg.topic("log:out"))

    with pytest.raises(GraphError, match=f"collide with that of '{first}'"):
        collision.build(spark=spark, check_connectors=False)
