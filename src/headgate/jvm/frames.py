"""Questions about a DataFrame's plan, and the nodes that share, count and split its rows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.base.schemas import has_floats
from headgate.jvm.gateway import (
    SINK,
    as_frame,
    java_frame,
    java_list,
    kernel_api,
    python_list,
)


def prototype(spark: SparkSession, schema: StructType) -> DataFrame:
    """An empty streaming DataFrame with these columns, for analysis only."""
    java = kernel_api(spark, "FrameApi").prototype(spark._jsparkSession, schema.json())
    return as_frame(java, spark)


def select(df: DataFrame, columns: Sequence[str], *, where: str | None = None) -> DataFrame:
    """Columns in SQL of the rows that a condition in SQL keeps; for names see `quoted`.

    PySpark calls the JVM about ten times for every column that is put together in Python.
    """
    java = kernel_api(df.sparkSession, "FrameApi").select(
        java_frame(df), json.dumps(list(columns)), where
    )
    return as_frame(java, df.sparkSession)


def quoted(*names: str, alias: str | None = None) -> str:
    """A column, or a field of one, in SQL, whatever characters its name has.

    >>> quoted("row", "a b", alias="a b")
    '`row`.`a b` AS `a b`'
    """
    path = ".".join(_in_quotes(name) for name in names)
    return path if alias is None else f"{path} AS {_in_quotes(alias)}"


def _in_quotes(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def sink_rows(df: DataFrame, number: int | None, schemas: Sequence[StructType]) -> DataFrame:
    """Rows of the sink with this number, or of none, as rows of the writer of all sinks."""
    java = kernel_api(df.sparkSession, "FrameApi").sinkRows(
        java_frame(df),
        -1 if number is None else number,
        SINK,
        json.dumps([schema.json() for schema in schemas]),
    )
    return as_frame(java, df.sparkSession)


def stateful_part(df: DataFrame) -> str | None:
    """What keeps state in the plan, in words."""
    found = kernel_api(df.sparkSession, "FrameApi").stateful(java_frame(df))
    return None if found is None else str(found)


def nondeterministic_part(df: DataFrame) -> str | None:
    """An expression that gives another value when a batch is replayed."""
    found = kernel_api(df.sparkSession, "FrameApi").nondeterministic(java_frame(df))
    return None if found is None else str(found)


def normal_keys(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """The frame with these columns as keys: one zero and one NaN, also in structs and arrays."""
    concerned = [name for name in names if has_floats(frame.schema[name].dataType)]
    if not concerned:
        return frame
    spark = frame.sparkSession
    made = kernel_api(spark, "FrameApi").normalKeys(java_frame(frame), java_list(spark, concerned))
    return as_frame(made, spark)


def carry(base: DataFrame, top: DataFrame, column: str) -> DataFrame | None:
    """`top` with a column of `base`, which the steps between do not select; None if it is lost."""
    spark = base.sparkSession
    java = kernel_api(spark, "FrameApi").carry(java_frame(base), java_frame(top), column)
    return None if java is None else as_frame(java, spark)


def name_of(base: DataFrame, top: DataFrame, column: str) -> str | None:
    """What the rows of `top` call a column of `base` that they show as it is."""
    api = kernel_api(base.sparkSession, "FrameApi")
    found = api.nameOf(java_frame(base), java_frame(top), column)
    return None if found is None else str(found)


def columns_read(df: DataFrame) -> list[str]:
    """The columns that a select reads."""
    return python_list(kernel_api(df.sparkSession, "FrameApi").columnsRead(java_frame(df)))


def tee(df: DataFrame) -> DataFrame:
    """Mark a repartitioned stream as shared, so that it is computed once."""
    return as_frame(kernel_api(df.sparkSession, "FrameApi").tee(java_frame(df)), df.sparkSession)


def count(df: DataFrame, step: str, output: str) -> DataFrame:
    """Count the rows that pass here as an output of a step."""
    return as_frame(
        kernel_api(df.sparkSession, "FrameApi").count(java_frame(df), step, output), df.sparkSession
    )


def with_batch_time(df: DataFrame, name: str) -> DataFrame:
    """The rows with the time of their batch, which a replay of the batch finds again."""
    return as_frame(
        kernel_api(df.sparkSession, "FrameApi").withBatchTime(java_frame(df), name), df.sparkSession
    )


def observe(df: DataFrame, source: str, at: str) -> DataFrame:
    """Let a source's watermark follow the times in a column of its rows."""
    return as_frame(
        kernel_api(df.sparkSession, "FrameApi").observe(java_frame(df), source, at), df.sparkSession
    )


def newest(df: DataFrame, keys: Sequence[str], *, position: str, bad: str) -> DataFrame:
    """The newest change of each key in a batch, and records that did not parse."""
    spark = df.sparkSession
    made = kernel_api(spark, "FrameApi").newest(
        java_frame(df), java_list(spark, keys), position, bad
    )
    return as_frame(made, spark)


def split(
    base: DataFrame,
    branches: Sequence[tuple[DataFrame, int]],
    *,
    sink_schemas: Sequence[StructType],
    spread_by: Sequence[str] = (),
    riders: bool = True,
) -> DataFrame | None:
    """All users of a shared stream in one pass; None if one is not a chain of select and filter.

    A branch is a DataFrame on `base` with the number of its sink, or -1 if it goes on. Rows of
    `base` that ride to a sink already go on with these branches only if `riders` says so.
    """
    spark = base.sparkSession
    java = kernel_api(spark, "FrameApi").split(
        java_frame(base),
        java_list(spark, [java_frame(df) for df, _ in branches]),
        java_list(spark, [sink for _, sink in branches]),
        java_list(spark, [s.json() for s in sink_schemas]),
        java_list(spark, spread_by),
        riders,
    )
    return None if java is None else as_frame(java, spark)


def is_chain(base: DataFrame, top: DataFrame) -> bool:
    """Whether only select, filter and count steps lie between the two."""
    return bool(
        kernel_api(base.sparkSession, "FrameApi").isChain(java_frame(base), java_frame(top))
    )


def numbered(df: DataFrame, sinks: Sequence[int]) -> DataFrame:
    """The writer's rows with the places in their task of those for these sinks."""
    spark = df.sparkSession
    return as_frame(
        kernel_api(spark, "FrameApi").numbered(java_frame(df), java_list(spark, sinks)), spark
    )


def source_order(df: DataFrame) -> list[str]:
    """The names of the sources in the order of the query's offset log."""
    return python_list(kernel_api(df.sparkSession, "FrameApi").sourceOrder(java_frame(df)))
