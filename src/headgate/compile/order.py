"""The order of a key's rows: by their place in a source, or one that a replay finds again."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from headgate.graph.hidden import EVENT_TIME, POSITION, PREFIX

TIE = "__hg_tie"
TIE_TYPE = "struct<pane: int, row: bigint>"


def place(rows: DataFrame) -> list[Column]:
    """The hidden columns that order rows: the position; without one, a tie beside a null."""
    if POSITION in rows.columns:
        return [F.col(POSITION)]
    return [F.lit(None).cast("long").alias(POSITION), _tie(rows).alias(TIE)]


def time_of(rows: DataFrame) -> Column:
    """The event time of rows; null in all of them if they have none."""
    time = F.col(EVENT_TIME) if EVENT_TIME in rows.columns else F.lit(None).cast("timestamp")
    return time.alias(EVENT_TIME)


def with_ties(frames: list[DataFrame]) -> list[DataFrame]:
    """The frames of one stream: if one has ties, all have the column."""
    if not any(TIE in frame.columns for frame in frames):
        return frames
    none = F.lit(None).cast(TIE_TYPE)
    return [f if TIE in f.columns else f.withColumn(TIE, none) for f in frames]


def _tie(rows: DataFrame) -> Column:
    """The order of rows that have no position but the same time: panes of a window one by one.

    Beyond that any order will do that a replay finds again; rows that are alike are one as another.
    """
    numbered = "pane" in rows.columns and rows.schema["pane"].dataType == IntegerType()
    pane = F.col("pane") if numbered else F.lit(None).cast("int")
    seen = [F.col(f"`{name}`") for name in rows.columns if not name.startswith(PREFIX)]
    return F.struct(pane.alias("pane"), F.xxhash64(F.to_json(F.struct(*seen))).alias("row"))
