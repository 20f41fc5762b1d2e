"""The Spark session that jobs run in: the kernel's jar, RocksDB state, and what must be set."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from headgate import kernel
from headgate.errors import UsageError
from headgate.java import ensure_java

DEFAULT_PARALLELISM = 2

# What the kernel's guarantees rest on: not for users to change.
_FIXED = {
    "spark.sql.extensions": kernel.EXTENSIONS,
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming"
    ".state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # unique file names: a retried task never leaves a version that another one may load
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.statefulOperator.allowMultiple": "true",
    "spark.speculation": "false",
}
_DEFAULTS = {
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
    # an executor that died is noticed sooner than by three tries of five seconds
    "spark.shuffle.io.retryWait": "1s",
}
# blocks do not leave the machine: compressing them costs more than it saves
_LOCAL = {"spark.shuffle.compress": "false", "spark.shuffle.spill.compress": "false"}


def get_session(
    *,
    parallelism: int = DEFAULT_PARALLELISM,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session of this process, made if there is none."""
    if os.environ.get("SPARK_REMOTE"):
        raise UsageError(
            "Headgate needs Spark's own JVM and does not work on Spark Connect",
            remedy="unset SPARK_REMOTE and name a master instead",
        )
    for name in conf or {}:
        if name in _FIXED:
            raise UsageError(
                f"{name} cannot be changed: Headgate's guarantees rest on it", remedy="leave it out"
            )
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    where = master or os.environ.get("HEADGATE_MASTER") or "local[*]"
    settings = {
        **_DEFAULTS,
        **(_LOCAL if where.startswith("local[") else {}),
        **(conf or {}),
        **_FIXED,
        "spark.jars": str(kernel.jar()),
        "spark.sql.shuffle.partitions": str(parallelism),
    }
    builder = SparkSession.builder.appName("headgate").master(where)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel(os.environ.get("HEADGATE_SPARK_LOG", "ERROR"))
    # a session that was there already keeps its static settings, but these are per query
    spark.conf.set("spark.sql.shuffle.partitions", str(parallelism))
    return spark
