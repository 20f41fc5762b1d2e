"""Clients of tables in lakes: their jars."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headgate.jvm.more_jars import need_jars

_DELTA = "org.apache.spark.sql.delta.DeltaLog"


def need_delta(spark: SparkSession) -> None:
    """Bring Delta Lake to the session, unless it is there; its own extension is not needed."""
    need_jars(spark, _DELTA, "delta-spark-4.4.0.lock")
