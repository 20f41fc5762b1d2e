"""The kernel's operators on DataFrames: decode, lookup, aggregates, joins, process functions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.errors import IllegalArgumentException
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType

from headgate.base.errors import GraphError
from headgate.jvm.failure import failure_report
from headgate.jvm.gateway import (
    as_frame,
    java_column,
    java_frame,
    java_list,
    kernel_api,
)


def decode(
    raw: DataFrame,
    schema: StructType,
    *,
    topic: str,
    step: str,
    malformed: str,
    table: bool = False,
    key_columns: Sequence[str] = (),
    format: str = "json",
    metadata: Sequence[tuple[str, str]] = (),
    **settings: object,
) -> DataFrame:
    """Raw records as rows of the schema, with `__hg_position`, `__hg_deleted` and `__hg_bad`.

    `schema` has the value's columns, then those of `metadata`: pairs of a column's name and the
    record's part in it (key, topic, partition, offset, timestamp or headers). `settings` are what
    the format needs: `avro_schema`, `registry` and the like.
    """
    spark = raw.sparkSession
    spec = {
        "schema": schema.jsonValue(),
        "topic": topic,
        "step": step,
        "malformed": malformed,
        "table": table,
        "key_columns": list(key_columns),
        "format": format,
        "metadata": [list(pair) for pair in metadata],
        **settings,
    }
    api = kernel_api(spark, "DecodeApi")
    try:
        return as_frame(api.apply(java_frame(raw), json.dumps(spec)), spark)
    except IllegalArgumentException as error:
        report = failure_report(error)
        if report.code not in ("AVRO_SCHEMA", "PROTOBUF_SCHEMA"):
            raise
        what = "Avro schema" if report.code == "AVRO_SCHEMA" else "descriptor"
        remedy = f"correct the {what} or the source's columns"
        raise GraphError(str(report.fields["text"]), step=step, remedy=remedy) from error


def lookup(
    stream: DataFrame,
    table: DataFrame,
    *,
    step: str,
    stream_keys: Sequence[str],
    table_keys: Sequence[str],
    value: str,
    position: str | None,
    deleted: str,
    into: str,
    missing: str,
    held: str | None = None,
    ttl_ms: int = 0,
    row_time: str | None = None,
    replicated: bool = False,
) -> DataFrame:
    """The stream with the latest table row of the same key as one more struct column.

    `held` is the stream's event time, if rows that wait hold the job's watermark. A table row is
    forgotten `ttl_ms` (0: never) after its event time in the table's column `row_time`, or without
    one after the time of its batch. With `replicated` every partition keeps the whole table, and
    the stream stays in the partitions that it comes in.
    """
    spark = stream.sparkSession
    java = kernel_api(spark, "LookupApi").apply(
        java_frame(stream),
        java_frame(table),
        step,
        java_list(spark, stream_keys),
        java_list(spark, table_keys),
        value,
        position,
        deleted,
        into,
        missing,
        held,
        ttl_ms,
        row_time,
        replicated,
    )
    return as_frame(java, spark)


def lookup_as_of(
    stream: DataFrame,
    table: DataFrame,
    *,
    step: str,
    table_name: str,
    keep_ms: int,
    stream_keys: Sequence[str],
    at: str,
    table_keys: Sequence[str],
    value: str,
    position: str,
    deleted: str,
    row_time: str,
    into: str,
    missing: str,
    held: str | None,
) -> DataFrame:
    """The stream with the table row of the same key that was valid at the time in `at`.

    A version is valid from the time in the table's column `row_time` on, and kept for `keep_ms`
    behind the watermark. `held` is as in `lookup`.
    """
    spark = stream.sparkSession
    java = kernel_api(spark, "LookupApi").asOf(
        java_frame(stream),
        java_frame(table),
        step,
        table_name,
        keep_ms,
        java_list(spark, stream_keys),
        at,
        java_list(spark, table_keys),
        value,
        position,
        deleted,
        row_time,
        into,
        missing,
        held,
    )
    return as_frame(java, spark)


def aggregate(
    stream: DataFrame,
    *,
    spec: Mapping[str, Any],
    keys: Sequence[str],
    names: Sequence[str],
    time: str | None,
    aggregates: Sequence[Column],
    having: Column | None,
    deleted: str,
) -> DataFrame:
    """The aggregates of all rows of each key so far, as changes; `deleted` is true in deletions.

    `time` is the column with the event time, if keys are forgotten by it.
    """
    spark = stream.sparkSession
    java = kernel_api(spark, "AggregateApi").apply(
        java_frame(stream),
        json.dumps(dict(spec)),
        java_list(spark, keys),
        java_list(spark, names),
        time,
        java_list(spark, [java_column(c) for c in aggregates]),
        None if having is None else java_column(having),
        deleted,
    )
    return as_frame(java, spark)


def top(
    stream: DataFrame,
    *,
    step: str,
    n: int,
    keys: Sequence[str],
    names: Sequence[str],
    ids: Sequence[str],
    row: Sequence[str],
    place: Sequence[str],
    by: Sequence[Column],
    rank: str,
    deleted: str,
) -> DataFrame:
    """The first `n` rows of each key, as changes by key and rank.

    `ids` are the columns by which rows of the stream replace each other, if they do.
    """
    spark = stream.sparkSession
    java = kernel_api(spark, "TopApi").apply(
        java_frame(stream),
        step,
        n,
        java_list(spark, keys),
        java_list(spark, names),
        java_list(spark, ids),
        java_list(spark, row),
        java_list(spark, place),
        java_list(spark, [java_column(c) for c in by]),
        rank,
        deleted,
    )
    return as_frame(java, spark)


def process(
    stream: DataFrame, function: Callable[[Iterator[Any]], Iterator[Any]], spec: Mapping[str, Any]
) -> DataFrame:
    """A process function over the rows of its inputs; `spec` says what the columns mean.

    `function` is from Arrow batches to Arrow batches, as that of `DataFrame.mapInArrow`.
    """
    spark = stream.sparkSession
    mapped = stream.mapInArrow(function, "kind TINYINT")  # only its pickled function is used
    api = kernel_api(spark, "ProcessApi")
    return as_frame(
        api.apply(java_frame(stream), java_frame(mapped), json.dumps(dict(spec))), spark
    )


def join(
    stream: DataFrame, spec: Mapping[str, Any], *, pairs: DataFrame, where: Column | None
) -> DataFrame:
    """The join of two streams whose rows are in one; `spec` says what matches.

    `pairs` is an empty stream with the columns that `where` is over.
    """
    spark = stream.sparkSession
    java = kernel_api(spark, "JoinApi").apply(
        java_frame(stream),
        json.dumps(dict(spec)),
        java_frame(pairs),
        None if where is None else java_column(where),
    )
    return as_frame(java, spark)


def dedupe(
    stream: DataFrame,
    *,
    step: str,
    keys: Sequence[str],
    order: Sequence[str],
    time: str | None,
    within: int,
    mark: str,
) -> DataFrame:
    """The stream with a column `mark` that is true in rows whose key has come before.

    Keys are forgotten `within` microseconds after the row that passed, by the column `time` or by
    the clock; 0: never.
    """
    spark = stream.sparkSession
    java = kernel_api(spark, "DedupeApi").apply(
        java_frame(stream),
        step,
        java_list(spark, keys),
        java_list(spark, order),
        time,
        within,
        mark,
    )
    return as_frame(java, spark)
