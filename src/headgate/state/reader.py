"""The state of a step as rows, read from Spark's checkpoint by the state reader of Spark."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Row, SparkSession

from headgate.errors import NotFoundError
from headgate.graph import operator_id


class StateView:
    """The rows that a step keeps, by key."""

    def __init__(self, step: str, key_names: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
        self._step = step
        self._key_names = key_names
        self._rows = rows

    def get(self, **key: Any) -> Any:
        """The row of a key, or None; the key's parts by the names of the table's key columns."""
        if set(key) != set(self._key_names):
            raise NotFoundError(
                f"the state of '{self._step}' has another key",
                expected=", ".join(self._key_names),
                got=", ".join(key),
                remedy="name the parts of the table's key",
            )
        wanted = [key[name] for name in self._key_names]
        for row in self._rows:
            if [row["key"][name] for name in self._key_names] == wanted:
                return row["row"]
        return None

    def all(self) -> list[dict[str, Any]]:
        """All rows: {"key": {...}, "row": {...}}."""
        return list(self._rows)


def read_state(
    spark: SparkSession,
    checkpoint: str,
    step: str,
    key_names: tuple[str, ...],
    *,
    batch: int | None = None,
) -> StateView:
    """The rows of a step's state after a batch (the latest committed one by default)."""
    _ = spark.streams.active  # the reader wants a state coordinator, which a fresh session lacks
    reader = spark.read.format("statestore").option("operatorId", operator_id(step))
    if batch is not None:
        reader = reader.option("batchId", batch)
    rows = []
    for found in reader.load(checkpoint).select("key", "value").collect():
        key = dict(zip(key_names, found["key"], strict=False))
        value = found["value"]
        rows.append({"key": key, "row": _plain(value[0])})
    return StateView(step, key_names, rows)


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return {k: _plain(v) for k, v in value.asDict().items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value
