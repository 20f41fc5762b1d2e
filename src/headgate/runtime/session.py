"""The Spark session that jobs run in: the kernel's jar, RocksDB state, and what must be set."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headgate.base.errors import HeadgateError, UsageError
from headgate.failures import Reason
from headgate.jvm.class_archive import make_later
from headgate.jvm.failure import explain_failure
from headgate.jvm.java import JavaHome, ensure_java
from headgate.jvm.session import (
    begin_jvm,
    bring_kernel,
    default_time_zone,
    equip,
    has_jvm,
    pass_on_signals,
    session_beside,
    start_jvm,
    stop_jvm,
)
from headgate.runtime.home_probe import is_local
from headgate.runtime.spark_settings import (
    FIXED_BY_SESSION,
    MASTER,
    SESSION_DEFAULTS,
    SHUFFLE_PARTITIONS,
    for_the_context,
    for_the_jvm,
    refuse_conflicts,
)

DEFAULT_PARALLELISM = 2
SPARK_LOG = "HEADGATE_SPARK_LOG"
_LOG_LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")
_OURS = "spark.headgate.session"
_ZONE = "spark.sql.session.timeZone"
_NAME = "spark.app.name"
# what Spark calls a session in which Python was there first
_NO_NAMES = (None, "pyspark-shell", "PySparkShell")
# pyspark prints an error as JSON with its Java trace before it raises it
_PYSPARK_LOGS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_at_exit: list[object] = []
_TRAINING = "headgate.testing.training"
"""The program that makes an archive of classes; a room above, so it is named and not imported."""


def get_session(
    *,
    parallelism: int = DEFAULT_PARALLELISM,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    brief: bool = False,
) -> SparkSession:
    """The session of this process, made if there is none; one that is there gets what it lacks.

    `brief` is for a command of seconds.
    """
    check_environment(conf or {})
    if has_session():
        spark = equipped(SparkSession.builder.getOrCreate())
        for name, value in (conf or {}).items():
            if spark.conf.isModifiable(name):
                spark.conf.set(name, value)
        spark.conf.set(SHUFFLE_PARTITIONS, str(parallelism))
        return spark
    return make_session(
        SparkSession.builder, parallelism=parallelism, master=master, conf=conf or {}, brief=brief
    )


def check_environment(conf: Mapping[str, str]) -> None:
    """Refuse settings and variables with which no session of ours can be made."""
    _refuse_connect()
    refuse_conflicts(conf)
    _spark_log_level()


def begin_session(
    *, master: str | None = None, conf: Mapping[str, str] | None = None, brief: bool = False
) -> None:
    """Let Spark's JVM start already, for a `get_session` with the same settings that will come.

    Meanwhile this process imports the user's file and the libraries that it needs. What is wrong is
    said by `get_session`.
    """
    given = dict(conf or {})
    if is_submitted() or has_jvm():
        return
    with suppress(HeadgateError, OSError):
        check_environment(given)
        java, where = _java_and_master(master, given)
        begin_jvm(java, for_the_jvm(given, where, quiet_log(), brief=brief), brief=brief)


def _java_and_master(master: str | None, conf: Mapping[str, str]) -> tuple[JavaHome, str | None]:
    """The Java to start, and the master as far as it is known before; sets what both need."""
    java = ensure_java()
    where = master or conf.get(MASTER)
    if not is_submitted():
        where = where or os.environ.get("HEADGATE_MASTER")
        os.environ.setdefault("PYSPARK_PYTHON", conf.get("spark.pyspark.python", sys.executable))
    return java, where


def make_session(
    builder: SparkSession.Builder,
    *,
    parallelism: int | None,
    master: str | None,
    conf: Mapping[str, str],
    brief: bool = False,
) -> SparkSession:
    """Start Spark with the user's settings, those of its flags and files, and what Headgate needs.

    The JVM is started with the user's settings first, because only its launcher knows all of them:
    it reads files and resolves packages. Ours are then added to what it has found.
    """
    submitted = is_submitted()
    java, where = _java_and_master(master, conf)
    launched = not submitted and not has_jvm()
    given = start_jvm(
        java, for_the_jvm(conf, where, quiet_log(), brief=brief) if launched else {}, brief=brief
    )
    if submitted:
        _refuse_another_master(given.get(MASTER), where)
    if launched or submitted:  # else some of it is left of a session that has ended
        refuse_conflicts(given, where=" from a flag or a properties file of Spark")
        where = where or given.get(MASTER)
    where = where or "local[*]"
    settings = for_the_context(
        given,
        {**conf, MASTER: where},
        kernel=bring_kernel(),
        launched=launched,
    )
    if parallelism is not None:
        settings[SHUFFLE_PARTITIONS] = str(parallelism)
    if given.get(_NAME) in _NO_NAMES and _NAME not in conf:
        settings[_NAME] = "headgate"
    for name, value in {**settings, _OURS: "true"}.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _make_archive_at_exit(java)
    if submitted:
        pass_on_signals(spark)
    if level := _spark_log_level():
        spark.sparkContext.setLogLevel(level)
    else:
        for name in _PYSPARK_LOGS:
            PySparkLogger.getLogger(name).disabled = True
        logging.getLogger().addFilter(_without_py4j)
    return spark


def _make_archive_at_exit(java: JavaHome) -> None:
    """Not before: what the user waits for needs the machine."""
    if not _at_exit:
        _at_exit.append(atexit.register(make_later, java, _TRAINING))


def equipped(spark: SparkSession, *, copy: bool = False) -> SparkSession:
    """A session that was there, with what Headgate needs.

    One that was not ours stays as it is: a job gets a copy of it, with all its views, functions and
    settings. With `copy` it always does, so that jobs side by side do not share their settings.
    """
    if not hasattr(spark, "_jsparkSession"):
        _refuse_connect(always=True)
    if spark.conf.get(_OURS, "") == "true":
        return session_beside(spark) if copy else spark
    refuse_conflicts(dict(spark.sparkContext.getConf().getAll()), where=" in this session")
    equip(spark)
    if is_local(str(spark.sparkContext.master)) and "PYSPARK_PYTHON" not in os.environ:
        spark.sparkContext.pythonExec = sys.executable  # whatever python3 is on the path
    zone = spark.conf.get(_ZONE)
    own = session_beside(spark)
    for name, value in {**SESSION_DEFAULTS, **FIXED_BY_SESSION, _OURS: "true"}.items():
        own.conf.set(name, value)
    if zone == default_time_zone(spark):  # nobody has chosen one: as in every other job
        own.conf.set(_ZONE, "UTC")
    return own


def is_submitted() -> bool:
    """Whether spark-submit has started this process, with a JVM that waits for it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _refuse_connect(*, always: bool = False) -> None:
    if always or os.environ.get("SPARK_REMOTE"):
        raise UsageError(
            "Headgate needs Spark's own JVM and does not work on Spark Connect",
            remedy="unset SPARK_REMOTE and name a master instead",
        )


def _refuse_another_master(submitted: str | None, wanted: str | None) -> None:
    if submitted and wanted and submitted != wanted:
        raise UsageError(
            f"spark-submit has started this job on {submitted}, so it cannot run on {wanted}",
            remedy="name the master once: to spark-submit",
        )


def _without_py4j(record: logging.LogRecord) -> bool:
    """Leave out what py4j logs, as root, before it raises the same (JavaClient.send_command)."""
    return record.msg != "Exception while sending command."


def has_session() -> bool:
    """Whether this process has Spark already, which is then not ours to stop."""
    # not the active session: that is one per thread
    return SparkContext._active_spark_context is not None


def stop_spark() -> None:
    """End this process's Spark, if it has one, and the JVM with it."""
    if (context := SparkContext._active_spark_context) is not None:
        context.stop()
    stop_jvm()


@contextmanager
def session_for_reading(
    *,
    parallelism: int = 1,
    brief: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """A session for a command that reads: this process's own, else one that ends with the block.

    What Spark throws in it is said as a job's failure is.
    """
    own = not has_session()
    spark = get_session(parallelism=parallelism, master=master, conf=conf, brief=brief)
    try:
        yield spark
    except AnalysisException:
        raise  # about the words of the user, who has a better sentence for it
    except (PySparkException, Py4JJavaError) as error:
        failure = explain_failure(error)
        if failure.reason is Reason.UNKNOWN:
            raise
        raise HeadgateError(
            failure.sentence, code=failure.reason.name, remedy=failure.remedy
        ) from error
    finally:
        if own:
            spark.stop()


def quiet_log() -> str:
    """Java's option for our log settings, unless Spark's own log is wanted."""
    if _spark_log_level():
        return ""
    # an address, not a path: options are cut at blanks
    quiet = Path(__file__).parent.parent / "resources" / "log4j2.properties"
    return f"-Dlog4j2.configurationFile={quiet.as_uri()}"


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
