"""Keys as columns: what a stateful step's rows are partitioned by."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.base.schemas import has_floats
from headgate.compile.rows import Arrival
from headgate.connectors.base import Expr
from headgate.graph.analysis import column


def key_columns(keys: Sequence[Expr], rows: StructType) -> list[str]:
    """The columns by which a stateful step's stream is partitioned.

    A key with floating numbers gets a column of its own, in normal form: the row keeps its own.
    """
    plain = {f.name for f in rows.fields if not has_floats(f.dataType)}
    return [
        key if isinstance(key, str) and key in plain else f"__hg_on{i}"
        for i, key in enumerate(keys)
    ]


def arrival_keys(arrival: Arrival) -> list[str]:
    """The key columns of rows that arrive at a stateful step."""
    return key_columns(arrival.node.operation.keys(arrival.input), arrival.rows.schema)


def keyed(arrival: Arrival) -> DataFrame:
    """A step's stream with its key as columns, also where the key is an expression."""
    names, made = arrival_keys(arrival), {}
    keys = arrival.node.operation.keys(arrival.input)
    for name, key in zip(names, keys, strict=True):
        if name not in arrival.rows.columns:
            made[name] = column(key)
    rows = arrival.rows.withColumns(made) if made else arrival.rows
    rows = jvm.normal_keys(rows, list(made))
    return arrival.node.operation.input_rows(arrival.node, arrival.input, rows, names)
