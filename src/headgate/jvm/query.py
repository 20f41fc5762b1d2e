"""A job's query: start, stop, fence, probe of the home, and crashes for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.jvm.gateway import (
    java_frame,
    kernel_api,
)


class JobQuery(StreamingQuery):
    """A job's query: PySpark's, with one call for all that is new."""

    def __init__(self, java: Any, api: Any) -> None:
        super().__init__(java)
        self._api = api

    def progress_after(self, batch: int, triggered: str) -> list[dict[str, Any]]:
        """What was reported after the trigger of that number and time, oldest first.

        Each has `stages`: those of the batch that Spark has told of, see `StageTimes.scala`.
        PySpark's `recentProgress` reads all of the last thousand reports, each with a call.
        """
        reports = self._api.progressAfter(self._jsq, batch, triggered)
        return [{**one["progress"], "stages": one["stages"]} for one in json.loads(reports)]


def settings(spark: SparkSession) -> dict[str, str]:
    """All settings of Spark's application.

    In one call: PySpark makes several for each of them.
    """
    found: dict[str, str] = json.loads(kernel_api(spark, "QueryApi").settings(spark._jsparkSession))
    return found


def start(
    df: DataFrame,
    *,
    name: str,
    checkpoint: str,
    spec: str,
    every: timedelta | None,
    drain: bool = False,
    event_time: Mapping[str, Any] | None = None,
) -> JobQuery:
    """Start a job's query; without `every` it ends when it has read what is there.

    With `drain` event time ends then, in a batch of its own that closes every window. `event_time`
    has `at`, the time of the last batch, and `sources`: for each that has event time `delay` and
    `idle_after`, and `watermark`, `rows_at` and `since` as the kernel left them in the journal.
    """
    millis = -1 if every is None else round(every.total_seconds() * 1000)
    time = json.dumps(event_time) if event_time else ""
    api = kernel_api(df.sparkSession, "QueryApi")
    return JobQuery(api.start(java_frame(df), name, checkpoint, spec, millis, drain, time), api)


def stop_after_batch(query: Any) -> None:
    """Let the query's running batch end, and start no other."""
    kernel_api(_context(), "QueryApi").stopAfterBatch(str(query.runId))


def trigger_now(query: Any) -> None:
    """Let the query's next batch begin now, not at the end of its interval."""
    kernel_api(_context(), "QueryApi").triggerNow(str(query.runId))


def await_sections(spark: SparkSession, lock_file: str, timeout: float) -> bool:
    """Wait until no driver is in the middle of a commit of the job; False if one still is."""
    waited = kernel_api(spark, "QueryApi").awaitSections(lock_file, int(timeout * 1000))
    return bool(waited)


def fence(
    spark: SparkSession, *, spark_folder: str, lock_file: str | None, job_file: str, token: str
) -> None:
    """Let queries of a Spark folder commit only while the job's lease has this token.

    Without `lock_file` (a home without locks) the lease is only looked at before each commit.
    """
    kernel_api(spark, "QueryApi").fence(
        spark._jsparkSession, spark_folder, lock_file, job_file, token
    )


def unfence(spark: SparkSession, spark_folder: str) -> None:
    """Take the fence away; one whose lease was lost stays."""
    kernel_api(spark, "QueryApi").unfence(spark._jsparkSession, spark_folder)


def home_probe(spark: SparkSession, folder: str, nonce: str) -> Any:
    """The kernel's HomeProbe with a new folder of the home, which it makes."""
    return kernel_api(spark, "QueryApi").homeProbe(spark._jsparkSession, folder, nonce)


def arm_crash(spark: SparkSession, run: str, point: str) -> None:
    """Make the run's next batch die at a point of its commit (for tests)."""
    kernel_api(spark, "QueryApi").armCrash(run, point)


def disarm_crash(spark: SparkSession, run: str) -> None:
    """Let the run live after all."""
    kernel_api(spark, "QueryApi").disarmCrash(run)


def forget(spark: SparkSession, query_run_id: str) -> None:
    """Drop what the kernel keeps of a query that ended."""
    kernel_api(spark, "QueryApi").forget(query_run_id)


def _context() -> SparkContext:
    # not the active session: that is one per thread, and any thread may watch or stop a job
    context = SparkContext._active_spark_context
    assert context is not None, "a running query has a context"
    return context
