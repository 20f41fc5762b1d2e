"""Classes of the kernel, DataFrames and lists of the JVM, and the jar that holds the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaClass
from pyspark import SparkContext
from pyspark.sql import Column, DataFrame, SparkSession

from headgate.base.errors import HeadgateError

PACKAGE = "org.apache.spark.sql.headgate"
EXTENSIONS = f"{PACKAGE}.planning.HeadgateExtensions"
FILE_MANAGER = f"{PACKAGE}.commit.FencedFileManager"
KAFKA_SOURCE = f"{PACKAGE}.sources.kafka.KafkaTopicProvider"
LOG_SOURCE = f"{PACKAGE}.sources.log.LogSourceProvider"
TICKS = f"{PACKAGE}.sources.tick.TickSourceProvider"
DURABILITY = "spark.headgate.durability"
CLOCK_OFFSET = "spark.headgate.clock.offset.ms"
WATERMARKS = "spark.headgate.watermarks"
OUT = "__hg_out"
SINK = "__hg_sink"
_JAR = Path(__file__).resolve().parents[1] / "jars" / "headgate-kernel.jar"


def jar() -> Path:
    """The compiled kernel that this package carries."""
    if not _JAR.exists():
        raise HeadgateError(
            f"the kernel jar is not at {_JAR}",
            code="INSTALLATION",
            remedy="build it with `make kernel` or reinstall headgate",
        )
    return _JAR


def kernel_api(spark: SparkSession | SparkContext, name: str) -> Any:
    """An object of the kernel's package for Python, `api`.

    `_jvm.org.apache...` would ask the JVM about each part of its name.
    """
    return JavaClass(f"{PACKAGE}.api.{name}", spark._jvm._gateway_client)  # type: ignore[union-attr]


def java_view(spark: SparkSession) -> Any:
    """The classes of the JVM by their names."""
    return spark._jvm


def java_frame(df: DataFrame) -> Any:
    """A DataFrame as the JVM has it."""
    return df._jdf


def as_frame(java: Any, spark: SparkSession) -> DataFrame:
    """A DataFrame of the JVM as Python has it."""
    return DataFrame(java, spark)


def java_list(spark: SparkSession, items: Sequence[Any]) -> Any:
    """A java.util.List with these items."""
    made = JavaClass("java.util.ArrayList", spark._jvm._gateway_client)()  # type: ignore[union-attr]
    for item in items:
        made.add(item)
    return made


def python_list(items: Any) -> list[Any]:
    """The items of a java.util.List.

    By number: an iterator of Java ends by an exception, which PySpark takes 15 ms to look at.
    """
    return [items.get(at) for at in range(items.size())]


def java_column(column: Column) -> Any:
    """A Column as the JVM has it."""
    return column._jc
