"""Sources and tables as DataFrames: records read, decoded and given their event time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate import jvm
from headgate.connectors.base import Expr, Source
from headgate.graph.plan import EVENT_TIME, POSITION, Node, SourceOp, TableOp, column
from headgate.steps.lookup.step import value_struct

ALIAS = "__hg_source:"
DELETED = "__hg_deleted"
BAD = "__hg_bad"
TICK = "__tick"


def ticks(spark: SparkSession) -> DataFrame:
    """A source without rows: a restarted query looks at its timers before new input comes."""
    return spark.readStream.format(jvm.TICKS).load().alias(ALIAS + TICK)


def _decoding(source: Source) -> dict[str, Any]:
    return dataclasses.asdict(source.decoding())


def source_frame(spark: SparkSession, node: Node) -> DataFrame:
    """The rows of a source with our hidden columns."""
    operation = node.operation
    assert isinstance(operation, SourceOp)
    name = node.step.id
    if isinstance(operation.source, Source):
        raw = operation.source.records(spark, table=False).alias(ALIAS + name)
        df = jvm.decode(
            raw,
            node.schemas["out"],
            topic=operation.source.describe(),
            step=name,
            malformed=operation.malformed,
            **_decoding(operation.source),
        )
    else:
        raw = operation.source(spark).alias(ALIAS + name)
        df = jvm.count(raw, name, "records_out")
    if operation.watermark is not None:
        expression, _ = operation.watermark
        df = jvm.observe(df.withColumn(EVENT_TIME, column(expression)), name, EVENT_TIME)
    return df


def event_times(nodes: Iterable[Node]) -> dict[str, dict[str, int | None]]:
    """The sources that have event time, with what the kernel is told of it, in milliseconds."""
    return {
        node.step.id: {
            "delay": node.operation.watermark[1],
            "idle_after": node.operation.idle_after,
        }
        for node in nodes
        if isinstance(node.operation, SourceOp) and node.operation.watermark is not None
    }


def _plain_keys(node: Node, operation: TableOp) -> list[str]:
    """The key's columns, into which a tombstone's key is read; none if a part is an expression.

    A tombstone has nothing but its key, from which an expression's columns cannot be told.
    """
    names = node.schemas["out"].names
    plain = [k for k in operation.keys if isinstance(k, str) and k in names]
    return plain if len(plain) == len(operation.keys) else []


def table_frame(spark: SparkSession, node: Node) -> DataFrame:
    """The changes of a table: its columns, key parts `__hg_k0`..., position and deleted."""
    operation = node.operation
    assert isinstance(operation, TableOp)
    name = node.step.id
    if isinstance(operation.source, Source):
        raw = operation.source.records(spark, table=True).alias(ALIAS + name)
        df = jvm.decode(
            raw,
            node.schemas["out"],
            topic=operation.source.describe(),
            step=name,
            malformed="fail",
            table=True,
            key_columns=_plain_keys(node, operation),
            **_decoding(operation.source),
        )
        deleted = F.col(DELETED)
    else:
        raw = operation.source(spark).alias(ALIAS + name)
        df = jvm.count(raw, name, "records_out").withColumn(POSITION, F.lit(None).cast("long"))
        deleted = F.lit(False)
    if operation.delete_when is not None:
        deleted = deleted | F.coalesce(column(operation.delete_when), F.lit(False))
    keys = {f"__hg_k{i}": column(k) for i, k in enumerate(operation.keys)}
    return jvm.normal_keys(df.withColumns({**keys, DELETED: deleted}), list(keys))


def table_rows(
    table: DataFrame, columns: list[str], keys: int, take: tuple[Expr, ...] | None
) -> DataFrame:
    """A table's changes as a lookup stores them: key parts, value, position, deleted."""
    # a tombstone has no columns to compute a value from
    value = F.when(~F.col(DELETED), value_struct(columns, take))
    return table.select(
        *[f"__hg_k{i}" for i in range(keys)], value.alias("value"), POSITION, DELETED
    )
