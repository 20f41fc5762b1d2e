"""Owns the same rows into a Delta table by Headgate and by Spark's own sink, each in its process.

Both run in the session that Headgate makes, and take their records from the same source with the
same decoding: what differs is the sink, and what a job keeps beside it. Each runs twice in its
session, and the second time counts.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from bench.process import Finished
from bench.spark_process import AGAIN, measure, new_folder, run_spark_process
from bench.window_data import EVENT, TOPIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTPUT = "table"


def run_delta_job(
    job: str, data_dir: Path, out_dir: Path, batch: int
) -> tuple[Finished, dict[str, float]]:
    """Run `headgate` or `spark`; what it used, and its phases in seconds."""
    new_folder(out_dir)
    ran = run_spark_process("bench.delta_jobs", job, data_dir, out_dir, batch)
    shutil.rmtree(out_dir / AGAIN, ignore_errors=True)
    return ran


# ------------------------------------------------------------- in the process that is measured


def _headgate(spark: SparkSession, data_dir: Path, out_dir: Path, batch: int) -> None:
    import headgate as hg
    from headgate.runtime.run import run

    @hg.job("bench_delta", checkpoints=hg.Checkpoints(every="0 seconds"))
    def delta(job: hg.Job) -> None:
        topic = hg.topic(f"log:{data_dir / TOPIC}", schema=EVENT, max_records=str(batch))
        job.source(TOPIC, topic).sink(OUTPUT, hg.DeltaSink(str(out_dir / OUTPUT)))

    outcome = run(delta, home=str(out_dir / "_work" / "home"), bounded=True, spark=spark)
    assert outcome.how == "finished", outcome


def _spark(spark: SparkSession, data_dir: Path, out_dir: Path, batch: int) -> None:
    from headgate import jvm
    from headgate.connectors.log.connector import LogSource
    from headgate.jvm.lakes import need_delta

    need_delta(spark)
    spark.conf.set("spark.databricks.delta.requiredSparkConfsCheck.enabled", "false")
    # as Headgate sets it: Spark's default of 50 tasks costs seconds here
    spark.conf.set("spark.databricks.delta.snapshotPartitions", "2")
    path = str(data_dir / TOPIC)
    source = LogSource(path, schema=EVENT, options={"max_records": str(batch)})
    rows = jvm.decode(
        source.records(spark, table=False), source.struct(), topic=source.describe(), step=TOPIC,
        malformed="fail",
    )  # fmt: skip
    query = (
        rows.select(*source.struct().names)
        .writeStream.format("delta")
        .option("checkpointLocation", str(out_dir / "_work" / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(out_dir / OUTPUT))
    )
    query.awaitTermination()


if __name__ == "__main__":
    measure({"headgate": _headgate, "spark": _spark}, again=True)
