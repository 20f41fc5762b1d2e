"""What a query reports of its batches, as the supervisor reads it."""

from __future__ import annotations

import time

from pyspark.sql import SparkSession

from headgate.jvm.gateway import kernel_api
from headgate.jvm.query import JobQuery


def test_reports_after_a_trigger_are_those_that_followed_it(spark: SparkSession) -> None:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 1).load()
    query = rows.writeStream.format("noop").trigger(processingTime="300 milliseconds").start()
    until = time.monotonic() + 60
    while len(query.recentProgress) < 5 and time.monotonic() < until:
        time.sleep(0.1)
    query.stop()
    reports = [(int(p["batchId"]), p["timestamp"]) for p in query.recentProgress]
    assert len(reports) >= 5
    job = JobQuery(query._jsq, kernel_api(spark, "QueryApi"))

    def after(batch: int, triggered: str) -> list[tuple[int, str]]:
        return [(p["batchId"], p["timestamp"]) for p in job.progress_after(batch, triggered)]

    assert after(-1, "") == reports
    for number, (batch, triggered) in enumerate(reports):
        assert after(batch, triggered) == reports[number + 1 :]
