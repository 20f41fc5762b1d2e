"""A join in the query: both streams into the kernel's operator, its outputs apart again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.compile.order import TIE, place, time_of, with_ties
from headgate.compile.rows import union_of
from headgate.graph.hidden import EVENT_TIME, PREFIX

KEY = "__hg_key"
ROW = "__hg_row"
INPUT = "__hg_input"
OUTPUT = "__hg_output"
LEFT = "__hg_left"
RIGHT = "__hg_right"
TAKEN = "__hg_taken"
OUTPUTS = ("out", "unmatched_left", "unmatched_right", "late")
"""The outputs by the numbers that the kernel gives them."""


def input_frame(input: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows of one side, in the columns that both share: each has its own for its rows."""
    names = [n for n in rows.columns if not n.startswith(PREFIX)]
    return jvm.select(
        rows,
        [
            *[jvm.quoted(k, alias=f"{KEY}{n}") for n, k in enumerate(keys)],
            f"CAST({input} AS TINYINT) AS {INPUT}",
            *place(rows),
            time_of(rows),
            f"struct({', '.join(map(jvm.quoted, names))}) AS {ROW}{input}",
        ],
    )


def join_frame(
    inputs: Sequence[DataFrame],
    spec: dict[str, Any],
    sides: Sequence[StructType],
    pairs: DataFrame,
    where: Column | None,
) -> DataFrame:
    """All rows that a join gives: the number of the output, the left row and the right row."""
    full = []
    for frame in with_ties(list(inputs)):
        columns = [c for c in frame.columns if not c.startswith(ROW)]
        rows = [
            F.col(name) if name in frame.columns else F.lit(None).cast(sides[n]).alias(name)
            for n, name in enumerate((f"{ROW}0", f"{ROW}1"))
        ]
        # ties last: frames are put together by name
        columns = [c for c in columns if c != TIE] + [c for c in columns if c == TIE]
        full.append(frame.select(*columns, *rows))
    return jvm.join(union_of(full), spec, pairs=pairs, where=where)


def of_output(base: DataFrame, output: str) -> DataFrame:
    """The rows of one output."""
    return base.where(F.col(OUTPUT) == OUTPUTS.index(output))


def parts(side: str, schema: StructType) -> list[Column]:
    """The columns of a side's row."""
    return [F.col(side).getField(name).alias(name) for name in schema.names]


def with_taken(rows: DataFrame, take: Sequence[Column]) -> DataFrame:
    """The rows with the values that are taken of the right row; null where there is none."""
    hidden = [F.col(f"`{name}`") for name in rows.columns]
    # expressions name the right row's columns, whatever else the rows have
    spread = rows.select(*hidden, F.col(f"{RIGHT}.*"))
    taken = F.when(F.col(RIGHT).isNotNull(), F.struct(*take)).alias(TAKEN)
    return spread.select(*hidden, taken)


def window_times(size_us: int) -> list[Column]:
    """Start and end of the window whose last microsecond a row has as its time."""
    end = F.unix_micros(F.col(EVENT_TIME)) + F.lit(1)
    return [
        F.timestamp_micros(end - F.lit(size_us)).alias("window_start"),
        F.timestamp_micros(end).alias("window_end"),
    ]
