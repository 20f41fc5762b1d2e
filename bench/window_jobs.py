"""Owns the same windows in Headgate and in Spark's own aggregation, each in a process of its own.

Both run in the session that Headgate makes, with the settings that it chooses, and take their
records from the same source with the same decoding: what differs is the aggregation and the sink.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from bench.data import topic_records
from bench.process import STARTED, Finished, run_measured
from bench.window_data import BOUND_MS, EVENT, TOPIC, WINDOW_MS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTPUT = "counts"
_CONF = {"spark.driver.memory": "4g"}
# Spark's watermark moves by rows alone: one that comes a day later closes all windows.
_A_DAY_MS = 24 * 3600 * 1000
_CLOSING_USER = -1


def run_spark_job(
    job: str, data_dir: Path, out_dir: Path, batch: int
) -> tuple[Finished, dict[str, float]]:
    """Run `headgate` or `spark`; what it used, and its phases in seconds."""
    shutil.rmtree(out_dir, ignore_errors=True)
    work = out_dir / "_work"
    work.mkdir(parents=True)
    if job == "spark":
        _with_closing_row(data_dir / TOPIC, work / TOPIC)
    arguments = [job, str(data_dir), str(out_dir), str(batch), str(time.time())]
    ran = run_measured(
        [sys.executable, "-m", "bench.window_jobs", *arguments],
        log=work / "stderr.log",
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    found = next(line for line in reversed(ran.lines) if line.startswith("RESULT "))
    phases: dict[str, float] = json.loads(found.removeprefix("RESULT "))
    for name in ("home", "checkpoint", "local", TOPIC):
        shutil.rmtree(work / name, ignore_errors=True)
    return ran, phases


def _with_closing_row(topic: Path, target: Path) -> None:
    """A copy of the topic, by links, with one more record."""
    from headgate.connectors.log_files import Record, TopicFiles

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

    from headgate import kernel
    from headgate.connectors.log import LogSource

    work = out_dir / "_work"
    source = LogSource(str(work / TOPIC), schema=EVENT, options={"max_records": str(batch)})
    events = kernel.decode(
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


def _main(job: str, data_dir: Path, out_dir: Path, batch: int, began: float) -> None:
    from headgate.runtime.session import get_session

    work = out_dir / "_work"
    spark = get_session(master="local[2]", conf={**_CONF, "spark.local.dir": str(work / "local")})
    print(STARTED, flush=True)
    started = time.time()
    jobs: dict[str, Callable[[SparkSession, Path, Path, int], None]] = {
        "headgate": _headgate,
        "spark": _spark,
    }
    jobs[job](spark, data_dir, out_dir, batch)
    done = time.time()
    assert topic_records(data_dir / TOPIC) > 0 and (out_dir / OUTPUT).exists()
    spark.stop()
    print("RESULT " + json.dumps({"start": started - began, "events": done - started}), flush=True)


if __name__ == "__main__":
    _main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
