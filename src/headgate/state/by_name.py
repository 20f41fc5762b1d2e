"""The state of a process function as rows: by its declared names, lists and maps whole."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.snapshots.layouts import Layout
from headgate.state.shape import ROWS, StateShape

_HIDDEN = (".next", ".expires", ".at")
"""Columns of a key's row that are of use to the kernel only."""
_EXPIRES = "expires"


def process_rows(
    rows: DataFrame, parts: Sequence[Column], layout: Layout, column: str | None, time_ms: int
) -> DataFrame:
    """Rows of a store as key, value and partition; what is over at a time is left out.

    `column` is the requested value state or timer. Without one, the row of a key has its
    values and timers, and how many entries its lists and maps have.
    """
    key = F.struct(*parts).alias("key")
    fields = [str(field["name"]) for field in layout["value"]["fields"]]
    if column is not None:
        there = F.col(f"value.`{column}`").isNotNull()
        if f"{column}.expires" in fields:
            there &= _lives(f"value.`{column}.expires`", time_ms)
        return rows.where(there).select(key, F.col(f"value.`{column}`").alias(column), "partition")
    name = str(layout["name"])
    entry = StateShape.beside_key(layout)
    if name == ROWS:
        shown = [F.col(f"value.`{field}`") for field in fields if not field.endswith(_HIDDEN)]
        return rows.select(key, F.struct(*shown).alias("row"), "partition")
    if "value" not in fields:  # the times in order, which nobody declared
        times = F.struct(*[F.col(f"key.{e}") for e in entry]).alias(name)
        return rows.select(key, times, "partition")
    if _EXPIRES in fields:
        rows = rows.where(_lives(f"value.{_EXPIRES}", time_ms))
    entries = rows.select(
        key, "partition", F.col(f"key.{entry[0]}").alias("e"), F.col("value.value").alias("v")
    )
    # by a rule of its own, since values may be of types that have no order
    ordered = F.array_sort(
        F.collect_list(F.struct("e", "v")),
        lambda a, b: F.when(a.e < b.e, -1).when(a.e > b.e, 1).otherwise(0),
    )
    whole = (
        F.transform(ordered, lambda pair: pair.v)
        if entry == ["number"]
        else F.map_from_entries(ordered)
    )
    return (
        entries.groupBy("key", "partition").agg(whole.alias(name)).select("key", name, "partition")
    )


def _lives(expires: str, time_ms: int) -> Column:
    return F.col(expires).isNull() | (F.col(expires) > F.timestamp_millis(F.lit(time_ms)))
