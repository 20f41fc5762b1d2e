"""The kernel's windows on DataFrames, and questions about aggregates."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession

from headgate.jvm.gateway import as_frame, java_column, java_frame, java_list, kernel_api


def window_problem(aggregated: DataFrame) -> str | None:
    """What makes aggregates unfit for windows, in words."""
    found = _window_api(aggregated.sparkSession).problem(java_frame(aggregated))
    return None if found is None else str(found)


def needs_order(aggregated: DataFrame) -> bool:
    """Whether one of these aggregates depends on the places of rows."""
    return bool(_window_api(aggregated.sparkSession).needsOrder(java_frame(aggregated)))


def replayable(aggregated: DataFrame, *, ordered: bool) -> DataFrame:
    """The aggregation as a step does it: most of its values are the same in a replay.

    With `ordered` the step knows the places of rows.
    """
    spark = aggregated.sparkSession
    return as_frame(_window_api(spark).replayable(java_frame(aggregated), ordered), spark)


def window(
    stream: DataFrame,
    *,
    spec: Mapping[str, Any],
    keys: Sequence[str],
    names: Sequence[str],
    time: str,
    position: str,
    aggregates: Sequence[Column],
    conditions: Sequence[Column],
    late_row: Sequence[str] | None,
    late: str,
) -> DataFrame:
    """The windows of a keyed stream; a late row is in the column `late`, null in all others.

    Without `late_row`, the columns of such a row, late rows are only counted. The column `time` is
    in the result as well: a window's rows have the time of its end. Aggregates that depend on the
    order of rows go by the batch, `position` and `time`, as far as the stream has them.
    """
    spark = stream.sparkSession
    java = _window_api(spark).apply(
        java_frame(stream),
        json.dumps(dict(spec)),
        java_list(spark, keys),
        java_list(spark, names),
        time,
        position,
        java_list(spark, [java_column(c) for c in aggregates]),
        java_list(spark, [java_column(c) for c in conditions]),
        None if late_row is None else java_list(spark, late_row),
        time,
        late,
    )
    return as_frame(java, spark)


def count_window(
    stream: DataFrame,
    *,
    spec: Mapping[str, Any],
    keys: Sequence[str],
    names: Sequence[str],
    position: str,
    time: str,
    aggregates: Sequence[Column],
) -> DataFrame:
    """Windows of so many rows of each key, in the order of `position`.

    A window's times are those of its first and last row, if the stream has the column `time`.
    """
    spark = stream.sparkSession
    java = _window_api(spark).counted(
        java_frame(stream),
        spec["step"],
        spec["size"],
        spec["every"],
        java_list(spark, keys),
        java_list(spark, names),
        position,
        time if time in stream.columns else None,
        java_list(spark, [java_column(c) for c in aggregates]),
        time,
    )
    return as_frame(java, spark)


def window_top(
    stream: DataFrame,
    *,
    spec: Mapping[str, Any],
    n: int,
    keys: Sequence[str],
    names: Sequence[str],
    time: str,
    row: Sequence[str],
    place: Sequence[str],
    by: Sequence[Column],
    rank: str,
    late_row: Sequence[str] | None,
    late: str,
) -> DataFrame:
    """The first `n` rows of each key and window, with their rank; late rows as in `window`.

    `row` are the columns that leave beside the keys, `place` those by which rows come that are
    alike in `by`.
    """
    spark = stream.sparkSession
    java = _window_api(spark).top(
        java_frame(stream),
        json.dumps(dict(spec)),
        n,
        java_list(spark, keys),
        java_list(spark, names),
        time,
        java_list(spark, row),
        java_list(spark, place),
        java_list(spark, [java_column(c) for c in by]),
        rank,
        None if late_row is None else java_list(spark, late_row),
        time,
        late,
    )
    return as_frame(java, spark)


def unkeyed(stream: DataFrame, name: str) -> DataFrame:
    """The stream with a key, under a name, that is the same for all rows."""
    spark = stream.sparkSession
    return as_frame(_window_api(spark).unkeyed(java_frame(stream), name), spark)


def _window_api(spark: SparkSession) -> Any:
    return kernel_api(spark, "WindowApi")
