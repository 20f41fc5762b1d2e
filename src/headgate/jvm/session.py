"""The kernel in a driver's JVM, whoever has started it, and sessions that plan its nodes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from headgate.base.errors import RefusedError
from headgate.jvm import launch
from headgate.jvm.gateway import EXTENSIONS, jar, kernel_api
from headgate.jvm.java import JavaHome
from headgate.jvm.spark_jars import KERNEL_JAR, read_kernel_jar


def start_jvm(java: JavaHome, settings: dict[str, str], *, brief: bool = False) -> dict[str, str]:
    """Start the driver's JVM unless it runs, and give the settings that its launcher has read.

    They are those of flags, of properties files and of spark-submit, and packages are jars in them.
    """
    launch.start_jvm(java, settings, brief=brief)
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def begin_jvm(java: JavaHome, settings: dict[str, str], *, brief: bool = False) -> None:
    """Let the driver's JVM start beside what this process still has to do."""
    launch.begin_jvm(java, settings, brief=brief)


def has_jvm() -> bool:
    """Whether this process is connected to a driver's JVM."""
    return SparkContext._gateway is not None


def stop_jvm() -> None:
    """End the driver's JVM, if this process has started one."""
    gateway: Any = SparkContext._gateway
    if gateway is not None and getattr(gateway, "proc", None) is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None


def bring_kernel() -> str | None:
    """Make the driver's JVM know the kernel; its jar for the executors, unless they will have it.

    The user may have named the jar in spark.jars, or put it among those of Spark.
    """
    found = _kernel_place()
    if found is not None:
        _check_build(found)
        # of a session of ours that has ended: the next one's executors do not have it yet
        return str(found) if found == KERNEL_JAR else None
    here = str(jar())
    jvm: Any = SparkContext._jvm
    loader = _loader()
    try:
        loader.addURL(getattr(jvm, "java.io.File")(here).toURI().toURL())
    except Py4JError as error:
        raise RefusedError(
            "this Spark's JVM takes no jar while it runs, and it does not have Headgate's",
            remedy=f"name it where Spark is started: --jars {here}",
        ) from error
    return here


def equip(spark: SparkSession) -> None:
    """Bring the kernel's jar to a session that was made without it: to driver and executors."""
    here = bring_kernel()
    if here is not None and Path(here).name not in _jars(spark):
        spark.sparkContext._jsc.addJar(here)


def session_beside(spark: SparkSession) -> SparkSession:
    """A session with the views, functions and settings of another, that plans the kernel's nodes.

    What is set on it does not change the other one.
    """
    named = EXTENSIONS in (spark.conf.get("spark.sql.extensions", "") or "")
    java = kernel_api(spark, "SessionApi").beside(spark._jsparkSession, not named)
    return SparkSession(spark.sparkContext, jsparkSession=java)


def pass_on_signals(spark: SparkSession) -> None:
    """Let the JVM that has started this process leave the answer to SIGTERM to it."""
    kernel_api(spark, "SessionApi").passOnSignals(os.getpid())


def default_time_zone(spark: SparkSession) -> str:
    """The time zone that a session has if nobody sets one."""
    return str(getattr(spark._jvm, "java.util.TimeZone").getDefault().getID())


def _jars(spark: SparkSession) -> str:
    """The jars that executors get, in one text."""
    return str(spark.sparkContext._jsc.sc().listJars().mkString(","))


def _loader() -> Any:
    return getattr(SparkContext._jvm, "java.lang.Thread").currentThread().getContextClassLoader()


def _kernel_place() -> Path | None:
    """Where the JVM has the kernel from."""
    url = _loader().getResource(f"{EXTENSIONS.replace('.', '/')}.class")
    if url is None:
        return None
    return Path(unquote(urlsplit(url.toString().removeprefix("jar:")).path).partition("!")[0])


def _check_build(path: Path) -> None:
    """Refuse a kernel that is not the one of this package."""
    theirs, ours = read_kernel_jar(path), read_kernel_jar()
    if theirs is not None and ours is not None and theirs.sources != ours.sources:
        raise RefusedError(
            f"Spark has the kernel of another Headgate, from {path}",
            remedy=f"leave that jar out, or put {ours.path} in its place",
        )
