"""Two states of a step compared, key by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F


def diff_states(
    before: DataFrame, after: DataFrame, *, limit: int, apart: Sequence[str] = ()
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """How many rows were added, removed or changed, and some of them.

    `apart` are the columns of the value that tell rows of the same key apart.
    """
    value = next(name for name in before.columns if name not in ("key", "partition"))
    # compared as JSON: the two may have other columns, and maps cannot be compared
    of = F.struct("key", *(F.col(f"{value}.`{name}`") for name in apart)).alias("of")
    old = before.select(of, F.col(value).alias("before"), _text(value).alias("was"))
    new = after.select(of, F.col(value).alias("after"), _text(value).alias("is"))
    both = old.join(new, "of", "full_outer").withColumn(
        "change",
        F.when(F.col("was").isNull(), "added")
        .when(F.col("is").isNull(), "removed")
        .when(F.col("was") != F.col("is"), "changed"),
    )
    found = both.where("change IS NOT NULL").select("change", "of.key", "before", "after").cache()
    try:
        counted = {row["change"]: row["count"] for row in found.groupBy("change").count().collect()}
        rows = [row.asDict(recursive=True) for row in found.limit(limit).collect()]
    finally:
        found.unpersist()
    return {what: counted.get(what, 0) for what in ("added", "removed", "changed")}, rows


def _text(column: str) -> Column:
    return F.to_json(F.struct(F.col(column).alias("v")))
