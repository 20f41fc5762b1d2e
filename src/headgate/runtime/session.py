"""The Spark session that jobs run in: the kernel's jar, RocksDB state, and what must be set."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headgate import jvm
from headgate.base.errors import UsageError
from headgate.jvm.class_archive import make_later
from headgate.jvm.java import JavaHome, ensure_java
from headgate.jvm.launch import start_jvm

DEFAULT_PARALLELISM = 2
SPARK_LOG = "HEADGATE_SPARK_LOG"
_LOG_LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
# pyspark prints an error as JSON with its Java trace before it raises it
_PYSPARK_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Spark's classes outgrow what Java first allows them: without room it stops four times to collect.
_JVM = "-XX:+UseParallelGC -XX:MetaspaceSize=256m"
_at_exit: list[object] = []
_TRAINING = "headgate.testing.training"
"""The program that makes an archive of classes; a room above, so it is named and not imported."""

# What the kernel's guarantees rest on: not for users to change.
_FIXED = {
    "spark.sql.extensions": jvm.EXTENSIONS,
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming"
    ".state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # unique file names: a retried task never leaves a version that another one may load
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    "spark.sql.streaming.statefulOperator.allowMultiple": "true",
    # a driver that lost its job's lease commits nothing any more
    "spark.sql.streaming.checkpointFileManagerClass": jvm.FILE_MANAGER,
    "spark.speculation": "false",
}
_DEFAULTS = {
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    # two messages a store and batch; each task names the versions it has committed anyway, and a
    # batch without the version of one does not end
    "spark.sql.streaming.stateStore.commitValidation.enabled": "false",
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    # a step needs a dozen generated classes: with Spark's 100, larger jobs compile in every batch
    "spark.sql.codegen.cache.maxEntries": "2000",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "3g",
    _JAVA_OPTIONS: _JVM,
    "spark.executor.extraJavaOptions": _JVM,
    # an executor that died is noticed sooner than by three tries of five seconds
    "spark.shuffle.io.retryWait": "1s",
}
# Without Spark's own pages nobody reads what it keeps for them, and writes down in every batch.
_NO_PAGES = {
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "40",
    "spark.ui.retainedTasks": "400",
    # never while a task runs: only when it has ended
    "spark.ui.liveUpdate.period": "-1ms",
}
# blocks do not leave the machine: to compress them, or to sum them up, costs more than it saves
_LOCAL = {
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.shuffle.checksum.enabled": "false",
    "spark.broadcast.compress": "false",
    "spark.broadcast.checksum": "false",
}


def get_session(
    *,
    parallelism: int = DEFAULT_PARALLELISM,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    brief: bool = False,
) -> SparkSession:
    """The session of this process, made if there is none; `brief` for a command of seconds."""
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
    _spark_log_level()
    java = ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    where = master or os.environ.get("HEADGATE_MASTER") or "local[*]"
    settings = {
        **_DEFAULTS,
        **({} if (conf or {}).get("spark.ui.enabled") == "true" else _NO_PAGES),
        **(_LOCAL if where.startswith("local[") else {}),
        **(conf or {}),
        **_FIXED,
        "spark.jars": str(jvm.jar()),
        "spark.sql.shuffle.partitions": str(parallelism),
        "spark.app.name": "headgate",
        "spark.master": where,
    }
    settings[_JAVA_OPTIONS] = _with_quiet_log(settings[_JAVA_OPTIONS])
    start_jvm(java, settings, brief=brief)
    builder = SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _make_archive_at_exit(java)
    if level := _spark_log_level():
        spark.sparkContext.setLogLevel(level)
    else:
        for name in _PYSPARK_LOGS:
            PySparkLogger.getLogger(name).disabled = True
        logging.getLogger().addFilter(_without_py4j)
    # a session that was there already keeps its static settings, but these are per query
    spark.conf.set("spark.sql.shuffle.partitions", str(parallelism))
    return spark


def _make_archive_at_exit(java: JavaHome) -> None:
    """Not before: what the user waits for needs the machine."""
    if not _at_exit:
        _at_exit.append(atexit.register(make_later, java, _TRAINING))


def setting_origin(name: str) -> str | None:
    """Who has set one of Spark's settings: Headgate, by default or for good; nobody of us: None."""
    if name in _FIXED:
        return "headgate"
    return "default" if name in {*_DEFAULTS, *_LOCAL, *_NO_PAGES} else None


def _without_py4j(record: logging.LogRecord) -> bool:
    """Leave out what py4j logs, as root, before it raises the same (JavaClient.send_command)."""
    return record.msg != "Exception while sending command."


def has_session() -> bool:
    """Whether this process has Spark already, which is then not ours to stop."""
    # not the active session: that is one per thread
    return SparkContext._active_spark_context is not None


@contextmanager
def session_for_reading(*, parallelism: int = 1, brief: bool = False) -> Iterator[SparkSession]:
    """A session for a command that reads: this process's own, else one that ends with the block."""
    own = not has_session()
    spark = get_session(parallelism=parallelism, brief=brief)
    try:
        yield spark
    finally:
        if own:
            spark.stop()


def _with_quiet_log(options: str) -> str:
    """Java's options with our log settings, unless the user set their own."""
    if _spark_log_level() or "log4j2.configurationFile" in options:
        return options
    # an address, not a path: options are cut at blanks
    quiet = Path(__file__).parent.parent / "resources" / "log4j2.properties"
    return f"{options} -Dlog4j2.configurationFile={quiet.as_uri()}"


def _spark_log_level() -> str | None:
    """The requested level of Spark's own log, if any."""
    level = os.environ.get(SPARK_LOG, "").upper()
    if level and level not in _LOG_LEVELS:
        raise UsageError(
            f"{SPARK_LOG} must be one of {', '.join(_LOG_LEVELS)}",
            got=repr(level),
            remedy=f"unset it, or set {SPARK_LOG}=INFO",
        )
    return level or None
