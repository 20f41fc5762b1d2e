"""The order of a key's rows: by their place in a source, or one that a replay finds again."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from headgate import jvm
from headgate.graph.hidden import EVENT_TIME, POSITION, PREFIX

TIE = "__hg_tie"
TIE_TYPE = "struct<pane: int, row: bigint>"


def place(rows: DataFrame) -> list[str]:
    """The hidden columns, in SQL, that order rows: the position, or else a tie beside a null."""
    if POSITION in rows.columns:
        return [POSITION]
    return [f"CAST(NULL AS BIGINT) AS {POSITION}", f"{_tie(rows)} AS {TIE}"]


def time_of(rows: DataFrame) -> str:
    """The event time of rows, in SQL; null in all of them if they have none."""
    return EVENT_TIME if EVENT_TIME in rows.columns else f"CAST(NULL AS TIMESTAMP) AS {EVENT_TIME}"


def with_ties(frames: list[DataFrame]) -> list[DataFrame]:
    """The frames of one stream: if one has ties, all have the column."""
    if not any(TIE in frame.columns for frame in frames):
        return frames
    none = F.lit(None).cast(TIE_TYPE)
    return [f if TIE in f.columns else f.withColumn(TIE, none) for f in frames]


def _tie(rows: DataFrame) -> str:
    """The order of rows that have no position but the same time: panes of a window one by one.

    Beyond that any order will do that a replay finds again; rows that are alike are one as another.
    """
    numbered = "pane" in rows.columns and rows.schema["pane"].dataType == IntegerType()
    pane = "pane" if numbered else "CAST(NULL AS INT)"
    seen = [jvm.quoted(name) for name in rows.columns if not name.startswith(PREFIX)]
    return f"struct({pane} AS pane, xxhash64(to_json(struct({', '.join(seen)}))) AS row)"
