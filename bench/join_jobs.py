"""Owns the same join in Headgate and in Spark's own stream-stream join, each in its own process.

Both run in the session that Headgate makes, with the settings that it chooses, and take their
records from the same source with the same decoding: what differs is the join and the sink.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.join_data import BOUND_MS, LEFT, LOWER_MS, RIGHT, SCHEMAS, UPPER_MS
from bench.process import Finished
from bench.spark_process import measure, new_folder, run_spark_process

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUTPUT = "pairs"


def run_spark_job(
    job: str, data_dir: Path, out_dir: Path, batch: int
) -> tuple[Finished, dict[str, float]]:
    """Run `headgate` or `spark`; what it used, and its phases in seconds."""
    new_folder(out_dir)
    return run_spark_process("bench.join_jobs", job, data_dir, out_dir, batch)


# ------------------------------------------------------------- in the process that is measured


def _headgate(spark: SparkSession, data_dir: Path, out_dir: Path, batch: int) -> None:
    import headgate as hg
    from headgate.runtime.run import run

    @hg.job("bench_join", checkpoints=hg.Checkpoints(every="5 seconds"))
    def paid(job: hg.Job) -> None:
        orders, payments = (
            job.source(
                topic,
                hg.topic(f"log:{data_dir / topic}", schema=schema, max_records=str(batch // 2)),
                event_time=hg.event_time(
                    "timestamp_millis(at)", out_of_orderness=f"{BOUND_MS} milliseconds"
                ),
            )
            for topic, schema in SCHEMAS.items()
        )
        within = hg.between(f"{LOWER_MS} milliseconds", f"{UPPER_MS} milliseconds")
        pairs = orders.key_by("user").join(
            "paid", payments.key_by("user"), within=within, take=["id AS payment", "amount"]
        )
        rows = pairs.select("id", "payment", "price", "amount")
        rows.sink(OUTPUT, hg.topic(f"log:{out_dir / OUTPUT}"))

    home = str(out_dir / "_work" / "home")
    outcome = run(paid, home=home, bounded=True, drain=True, spark=spark)
    assert outcome.how == "finished", outcome


def _spark(spark: SparkSession, data_dir: Path, out_dir: Path, batch: int) -> None:
    from pyspark.sql import functions as F

    from headgate import jvm
    from headgate.connectors.log.connector import LogSource

    def side(topic: str) -> DataFrame:
        options = {"max_records": str(batch // 2)}
        source = LogSource(str(data_dir / topic), schema=SCHEMAS[topic], options=options)
        rows = jvm.decode(
            source.records(spark, table=False), source.struct(), topic=source.describe(),
            step=topic, malformed="fail",
        ).select(*source.struct().names)  # fmt: skip
        return rows.withColumn("time", F.expr("timestamp_millis(at)")).withWatermark(
            "time", f"{BOUND_MS} milliseconds"
        )

    bounds = (
        f"l.user = r.user AND r.time >= l.time + INTERVAL {LOWER_MS // 1000} SECONDS"
        f" AND r.time <= l.time + INTERVAL {UPPER_MS // 1000} SECONDS"
    )
    rows = (
        side(LEFT).alias("l").join(side(RIGHT).alias("r"), F.expr(bounds))
        .selectExpr("l.id AS id", "r.id AS payment", "l.price AS price", "r.amount AS amount")
    )  # fmt: skip
    query = (
        rows.writeStream.format("json")
        .option("checkpointLocation", str(out_dir / "_work" / "checkpoint"))
        .outputMode("append")
        .trigger(availableNow=True)
        .start(str(out_dir / OUTPUT))
    )
    query.awaitTermination()


if __name__ == "__main__":
    measure({"headgate": _headgate, "spark": _spark})
