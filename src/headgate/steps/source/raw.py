"""Where sources and tables read from: a connector, or a function that makes a DataFrame."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Source
from headgate.graph.operation import RawSource
from headgate.graph.plan import Plan

ALIAS = "__hg_source:"
"""Begins the alias of a source's records: the query's sources are found by it."""


def source_schema(plan: Plan, name: str, source: RawSource) -> StructType:
    """The columns that a source gives."""
    if isinstance(source, Source):
        return source.struct()
    if not callable(source):
        raise GraphError(
            "source must be a topic, LogSource, ... or a function from SparkSession to a DataFrame",
            step=name,
            got=repr(source),
            remedy="for instance hg.topic('log:data/in', schema='id BIGINT')",
            location=user_location(),
        )
    df = source(plan.spark)
    if not isinstance(df, DataFrame) or not df.isStreaming:
        raise GraphError(
            "the source's function must return a streaming DataFrame",
            step=name,
            remedy="use spark.readStream in it and return the DataFrame",
            location=user_location(),
        )
    if jvm.stateful_part(df) == "withWatermark":
        raise GraphError(
            "the source's function calls withWatermark, and the job's watermark is Headgate's",
            step=name,
            remedy="leave it out and give event_time=hg.event_time(...)",
            location=user_location(),
        )
    return df.schema


def decoded(
    spark: SparkSession, name: str, source: Source, schema: StructType, **more: Any
) -> DataFrame:
    """The records of a connector as rows of a schema, with hidden columns."""
    table, how = bool(more.get("table")), source.decoding()
    return jvm.decode(
        source.records(spark, table=table).alias(ALIAS + name),
        schema,
        topic=source.describe(),
        step=name,
        format=how.format,
        metadata=how.metadata,
        **more,
        **how.settings,
    )


def made_by_function(spark: SparkSession, name: str, source: RawSource) -> DataFrame:
    """The rows of a user's function, counted."""
    assert not isinstance(source, Source)
    return jvm.count(source(spark).alias(ALIAS + name), name, "records_out")
