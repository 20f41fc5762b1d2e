"""State outside of a query: layouts, rows, rewriting, and whether files are whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from headgate.base.errors import RefusedError
from headgate.jvm.failure import failure_report
from headgate.jvm.gateway import (
    as_frame,
    java_frame,
    java_list,
    kernel_api,
    python_list,
)


def state_layout(frame: DataFrame) -> dict[str, list[dict[str, Any]]]:
    """The layouts of the stores that each step of a compiled job keeps, by step."""
    layouts: dict[str, list[dict[str, Any]]] = json.loads(
        kernel_api(frame.sparkSession, "StateApi").layouts(java_frame(frame))
    )
    return layouts


def state_rows(
    spark: SparkSession,
    *,
    folder: str,
    operator_id: int,
    layout: Mapping[str, Any],
    version: int,
    ids: Sequence[str],
    partitions: Sequence[int] | None = None,
) -> DataFrame:
    """All rows of one store: partition, key and value; `ids` has one unique id a partition."""
    java = kernel_api(spark, "StateApi").rows(
        spark._jsparkSession,
        folder,
        operator_id,
        json.dumps(layout),
        version,
        java_list(spark, ids),
        None if partitions is None else java_list(spark, partitions),
    )
    return as_frame(java, spark)


def state_get(
    spark: SparkSession,
    *,
    folder: str,
    operator_id: int,
    layout: Mapping[str, Any],
    version: int,
    ids: Sequence[str],
    key: DataFrame,
) -> DataFrame:
    """The rows of one key, as `state_rows` has them; `key` is one row of partition_by columns."""
    java = kernel_api(spark, "StateApi").get(
        spark._jsparkSession,
        folder,
        operator_id,
        json.dumps(layout),
        version,
        java_list(spark, ids),
        java_frame(key),
    )
    return as_frame(java, spark)


def rewrite_state(
    spark: SparkSession,
    *,
    source: str | None,
    source_version: int,
    source_ids: Sequence[Sequence[str]],
    operator_id: int,
    old: Sequence[Mapping[str, Any]] | None,
    new: Sequence[Mapping[str, Any]],
    target: str,
    target_version: int,
    partitions: int,
    step: str | None = None,
    job: DataFrame | None = None,
    drops: bool = False,
    lost: Callable[[int], object] = lambda rows: None,
) -> list[list[str]]:
    """Write a step's state anew below `target`; the unique ids by partition and store.

    Rows go from `old` to `new` by the names of stores and columns; without `source` the stores
    are empty. `step` is for Spark's operator metadata, which else has the name in the source's.
    Where keys were not in normal form, `job`, compiled, says how what they kept becomes one; with
    `drops` what cannot be merged goes. `lost` is called with the number of rows that were dropped.
    """
    try:
        found = kernel_api(spark, "StateApi").rewrite(
            spark._jsparkSession,
            source,
            source_version,
            java_list(spark, [java_list(spark, of) for of in source_ids]),
            operator_id,
            step,
            None if old is None else json.dumps(old),
            json.dumps(new),
            target,
            target_version,
            partitions,
            None if job is None else java_frame(job),
            drops,
        )
    except (PySparkException, Py4JJavaError) as error:
        report = failure_report(error)
        if report.code not in ("STATE_TYPE", "STATE_KEYS"):
            raise
        remedy = "give what changed its type another name, or start from nothing with --fresh"
        if report.code == "STATE_KEYS":
            remedy = (
                "pass --allow-dropped-state to keep what 0.0 and the usual NaN had, and to drop "
                "what the others had; or start from nothing with --fresh"
            )
        raise RefusedError(str(report.fields["text"]), step=step, remedy=remedy) from error
    lost(int(found.lost()))
    return [[str(id) for id in python_list(of)] for of in python_list(found.ids())]


def verify_files(spark: SparkSession, paths: Sequence[str]) -> dict[str, str]:
    """By path, what is wrong with a file: missing, cut short or changed; the others are left out.

    A file is compared with the checksums that Spark and Hadoop keep beside it, where they do.
    """
    found = kernel_api(spark, "StateApi").verify(spark._jsparkSession, java_list(spark, paths))
    # nearly always none: looking into an empty map costs one call
    return {} if found.isEmpty() else {str(path): str(found[path]) for path in found}
