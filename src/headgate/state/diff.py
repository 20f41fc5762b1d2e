"""Two states of a step compared, key by key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from headgate.state.plain import plain_rows


def diff_states(
    before: DataFrame, after: DataFrame, *, limit: int, apart: Sequence[str] = ()
) -> tuple[dict[str, int], list[dict[str, Any]]]:
    """How many rows were added, removed or changed, and some of them.

    `apart` are the columns of the value that tell rows of the same key apart.
    """
    value = next(name for name in before.columns if name not in ("key", "partition"))
    # compared as JSON: the two may have other columns, and maps cannot be compared
    of = F.struct("key", *(F.col(f"{value}.`{name}`") for name in apart)).alias("of")
    old = before.select(of, F.col(value).alias("before"), _text(before, value).alias("was"))
    new = after.select(of, F.col(value).alias("after"), _text(after, value).alias("is"))
    both = old.join(new, "of", "full_outer").withColumn(
        "change",
        F.when(F.col("was").isNull(), "added")
        .when(F.col("is").isNull(), "removed")
        .when(F.col("was") != F.col("is"), "changed"),
    )
    found = both.where("change IS NOT NULL").select("change", "of.key", "before", "after").cache()
    try:
        counted = {row["change"]: row["count"] for row in found.groupBy("change").count().collect()}
        rows = plain_rows(found.limit(limit))
    finally:
        found.unpersist()
    return {what: counted.get(what, 0) for what in ("added", "removed", "changed")}, rows


def _text(frame: DataFrame, column: str) -> Column:
    value = _with_entries(F.col(column), frame.schema[column].dataType)
    return F.to_json(F.struct(value.alias("v")))


def _with_entries(value: Column, kind: DataType) -> Column:
    """The value with lists of entries in place of maps whose keys are bytes.

    As keys in Spark's JSON, the same bytes have another text each time.
    """
    if "map<binary" not in kind.simpleString():
        return value
    if isinstance(kind, MapType):
        key_type, value_type = kind.keyType, kind.valueType
        return F.transform(
            F.map_entries(value),
            lambda e: F.struct(
                _with_entries(e["key"], key_type).alias("key"),
                _with_entries(e["value"], value_type).alias("value"),
            ),
        )
    if isinstance(kind, ArrayType):
        element_type = kind.elementType
        return F.transform(value, lambda e: _with_entries(e, element_type))
    assert isinstance(kind, StructType)
    fields = [_with_entries(value[f.name], f.dataType).alias(f.name) for f in kind.fields]
    return F.when(value.isNotNull(), F.struct(*fields))
