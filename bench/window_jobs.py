"""Owns the same windows in Headgate and in Spark's own aggregation, each in a process of its own.

Both run in the session that Headgate makes, with the settings that it chooses, and take their
records from the same source with the same decoding: what differs is the aggregation and the sink.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bench.process import Finished
from bench.spark_process import measure, new_folder, run_spark_process
from bench.window_data import BOUND_MS, EVENT, TOPIC, WINDOW_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTPUT = "counts"
# Spark's watermark moves by rows alone: one that comes a day later closes all windows.
_A_DAY_MS = 24 * 3600 * 1000
_CLOSING_USER = -1


def run_spark_job(
    job: str, data_dir: Path, out_dir: Path, batch: int
) -> tuple[Finished, dict[str, float]]:
    """Run `headgate` or `spark`; what it used, and its phases in seconds."""
    work = new_folder(out_dir)
    if job == "spark":
        _with_closing_row(data_dir / TOPIC, work / TOPIC)
    ran = run_spark_process("bench.window_jobs", job, data_dir, out_dir, batch)
    shutil.rmtree(work / TOPIC, ignore_errors=True)
    return ran


def _with_closing_row(topic: Path, target: Path) -> None:
    """A copy of the topic, by links, with one more record."""
    from headgate.connectors.log.files import Record, TopicFiles

    for file in sorted(topic.glob("partition-*/*.jsonl")):
        (target / file.parent.name).mkdir(parents=True, exist_ok=True)
        os.link(file, target / file.parent.name / file.name)
    shutil.copy(topic / "topic.json", target)
    last = max(topic.glob("partition-*/*.jsonl"), key=lambda file: file.name.split("-")[2])
    with open(last, "rb") as lines:
        event = json.loads(next(lines))
    closing = {**event, "user": _CLOSING_USER, "at": event["at"] + _A_DAY_MS}
    TopicFiles(target).append([Record(json.dumps(closing), None)], 0)


# ------------------------------------------------------------- in the process that is measured


def _headgate(spark: SparkSession, data_dir: Path, out_dir: Path, batch: int) -> None:
    from pyspark.sql import functions as F

    import headgate as hg
    from headgate.runtime.run import run

    @hg.job("bench_windows", checkpoints=hg.Checkpoints(every="5 seconds"))
    def windows(job: hg.Job) -> None:
        events = job.source(
            TOPIC,
            hg.topic(f"log:{data_dir / TOPIC}", schema=EVENT, max_records=str(batch)),
            event_time=hg.event_time(
                "timestamp_millis(at)", out_of_orderness=f"{BOUND_MS} milliseconds"
            ),
        )
        counts = events.key_by("user").window(
            "counts_5m", hg.tumbling(f"{WINDOW_MS} milliseconds"), F.count("*").alias("n")
        )
        rows = counts.select(
            "user", "unix_millis(window_start) AS start", "unix_millis(window_end) AS end", "n"
        )
        rows.sink(OUTPUT, hg.topic(f"log:{out_dir / OUTPUT}"))

    home = str(out_dir / "_work" / "home")
    outcome = run(windows, home=home, bounded=True, drain=True, spark=spark)
    assert outcome.how == "finished", outcome


def _spark(spark: SparkSession, data_dir: Path, out_dir: Path, batch: int) -> None:
    from pyspark.sql import functions as F

    from headgate import jvm
    from headgate.connectors.log.connector import LogSource

    work = out_dir / "_work"
    source = LogSource(str(work / TOPIC), schema=EVENT, options={"max_records": str(batch)})
    events = jvm.decode(
        source.records(spark, table=False), source.struct(), topic=source.describe(), step=TOPIC,
        malformed="fail",
    )  # fmt: skip
    counts = (
        events.withColumn("time", F.expr("timestamp_millis(at)"))
        .withWatermark("time", f"{BOUND_MS} milliseconds")
        .groupBy(F.window("time", f"{WINDOW_MS} milliseconds"), "user")
        .agg(F.count("*").alias("n"))
    )
    rows = counts.selectExpr(
        "user", "unix_millis(window.start) AS start", "unix_millis(window.end) AS end", "n"
    )
    query = (
        rows.writeStream.format("json")
        .option("checkpointLocation", str(work / "checkpoint"))
        .outputMode("append")
        .trigger(availableNow=True)
        .start(str(out_dir / OUTPUT))
    )
    query.awaitTermination()


if __name__ == "__main__":
    measure({"headgate": _headgate, "spark": _spark})
