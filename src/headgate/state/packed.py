"""Rows of a join's state one by one: several of a key lie in one value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from headgate.snapshots.layouts import Layout, rows_of

APART = ["side", "event_time", "number"]
"""What tells the rows of a key apart."""
COLUMNS = ["left", "right", "matched"]
"""What a row has beside that."""
_SIDES = ("left", "right")
_RECORDED = ("null", "side")
"""What becomes of unmatched rows on sides where matches are recorded."""


def is_packed(layout: Layout) -> bool:
    """Whether a value of the store has many rows of its key."""
    return any(rows_of(field["type"]) is not None for field in layout["value"]["fields"])


def unpacked(rows: DataFrame, config: Mapping[str, Any]) -> DataFrame:
    """A row of state for each row of a stream, with what tells it apart in its key.

    Whether it had a match is null where the join, which has this config, does not record it.
    """
    kind = rows.schema["value"].dataType
    assert isinstance(kind, StructType)
    none = {name: F.lit(None).cast(_row(kind, name)) for name in _SIDES}

    def of_side(number: int, side: str) -> Column:
        is_recorded = config.get(f"{side}_unmatched") in _RECORDED

        def one(kept: Column) -> Column:
            return F.struct(
                F.lit(number).cast("tinyint").alias("side"),
                kept["event_time"].alias("event_time"),
                kept["number"].alias("number"),
                *((kept["row"] if name == side else none[name]).alias(name) for name in _SIDES),
                (kept["matched"] if is_recorded else F.lit(None).cast("boolean")).alias("matched"),
            )

        return F.transform(F.col(f"value.{side}"), one)

    sides = [of_side(number, side) for number, side in enumerate(_SIDES)]
    single = rows.select("partition", "key", F.explode(F.concat(*sides)).alias("one"))
    return single.select(
        "partition",
        F.struct("key.*", *(f"one.{name}" for name in APART)).alias("key"),
        F.struct(*(f"one.{name}" for name in COLUMNS)).alias("value"),
    )


def _row(kind: StructType, side: str) -> StructType:
    array = kind[side].dataType
    assert isinstance(array, ArrayType) and isinstance(array.elementType, StructType)
    row = array.elementType["row"].dataType
    assert isinstance(row, StructType)
    return row
