"""The state of a step at any snapshot, as rows: read from its files, never from the job."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StructField, StructType

from headgate import jvm
from headgate.base.errors import NotFoundError, UsageError
from headgate.graph.formats import config_of
from headgate.snapshots.layouts import Layout
from headgate.snapshots.snapshot import Snapshot
from headgate.state.by_name import process_rows
from headgate.state.packed import COLUMNS, is_packed, unpacked
from headgate.state.plain import naive_utc, one_form, plain_rows
from headgate.state.shape import ROWS, StateShape

_ALL = "__hg_all"
_OURS = "__hg_"
"""How columns of state begin that no job named."""
_TIMES = ("window_start", "window_end")
"""Kept as microseconds."""
_ROW_TIMES = ("event_time", "valid_from")
"""The same, in keys of stores alone: columns of users' rows may have these names."""
_EXPIRES = "expires"
_EXPIRY = "expiry"
"""The store that has the rows of a table by the time from which they are forgotten."""
_NEVER = 2**63 - 1
"""That time, in microseconds, of rows that are kept until they are updated or deleted."""


class StateReader:
    """Reads what the steps of a job kept at a snapshot."""

    def __init__(self, spark: SparkSession, snapshot: Snapshot) -> None:
        self.spark = spark
        self._snapshot = snapshot
        self._closure = snapshot.closure()
        self.shape = StateShape(snapshot)
        _ = spark.streams.active  # state stores want a coordinator, which a fresh session lacks

    def frame(self, step: str, store: str = ROWS) -> DataFrame:
        """Every row of a store: key, its value under the name of the state, and the partition."""
        column = self.shape.column(step, store)
        layout, number = self.shape.store(step, ROWS if column else store)
        rows = jvm.state_rows(self.spark, **self._where(step, layout, number))
        return self._named(rows, step, layout, column)

    def get(self, step: str, key: Mapping[str, Any], store: str = ROWS) -> DataFrame:
        """The rows of one key; only the partition of that key is read.

        A part of the key may be text, as `json_value` shows it; None is null.
        """
        self.shape.check_key(step, key)
        names = self.shape.key_names(step)
        column = self.shape.column(step, store)
        layout, number = self.shape.store(step, ROWS if column else store)
        fields = StructType.fromJson(dict(layout["key"])).fields
        parts = [fields[at] for at in layout["partition_by"]]
        if not names:  # windows without a key: all rows have the same
            names, key = [_ALL], {_ALL: True}
        wanted = self.spark.range(1).select(
            *(
                _literal(key[name], part.dataType).alias(part.name)
                for name, part in zip(names, parts, strict=True)
            )
        )
        found = wanted.select(*(F.isnull(f"`{part.name}`") for part in parts)).first() or ()
        for name, part, is_null in zip(names, parts, found, strict=True):
            if is_null and key[name] is not None:
                raise _no_value(name, key[name], part)
        rows = jvm.state_get(self.spark, key=wanted, **self._where(step, layout, number))
        return self._named(rows, step, layout, column)

    def view(self, step: str, store: str = ROWS) -> StateView:
        """Every row of a store as plain Python values."""
        rows = plain_rows(self.frame(step, store).drop("partition"))
        return StateView(step, tuple(self.shape.key_names(step)), rows)

    def _named(
        self, rows: DataFrame, step: str, layout: Layout, column: str | None = None
    ) -> DataFrame:
        """Name the key's parts as the user does, and the value as the state."""
        names = self.shape.key_names(step)
        fields = StructType.fromJson(dict(layout["key"])).names
        parts = [
            F.col(f"key.`{fields[at]}`").alias(name)
            for at, name in zip(layout["partition_by"], names, strict=bool(names))
        ]
        if self.shape.is_named(step):
            time = self._closure.offsets.batch_time_ms or 0
            return process_rows(rows, parts, layout, column, time)
        key = F.struct(*parts).alias("key")
        named = [f["name"] for f in layout["value"]["fields"]]
        if is_packed(layout):
            rows, named = unpacked(rows, config_of(self.shape.step(step))), COLUMNS
        if layout["name"] == _EXPIRY:
            end = F.struct(_end(F.col(f"key.{_EXPIRES}"))).alias(_EXPIRY)
            return rows.select(key, end, "partition")
        if layout["name"] == ROWS and named == ["row", _EXPIRES]:
            end = _end(F.unix_micros(f"value.{_EXPIRES}"))
            return rows.select(key, F.col("value.row").alias("row"), end, "partition")
        others = [_shown("key", field, field) for field in self.shape.beside_key(layout)]
        if named == ["row"]:
            value = F.col("value.row").alias("row")
        else:
            columns = [
                _shown("value", *pair)
                for pair in zip(named, titles(named), strict=True)
                if not pair[0].startswith(_OURS)
            ]
            name = "row" if layout["name"] == ROWS else str(layout["name"])
            value = F.struct(*others, *columns).alias(name)
        return rows.select(key, value, "partition")

    def _where(self, step: str, layout: Layout, number: int) -> dict[str, Any]:
        operator = int(self.shape.step(step)["operator_id"])
        ids = self._closure.commit.state_ids.get(operator, ())
        return {
            "folder": self._snapshot.location,
            "operator_id": operator,
            "layout": layout,
            "version": self._closure.version,
            "ids": [partition[number] for partition in ids],
        }


class StateView:
    """The rows that a step keeps, by key."""

    def __init__(self, step: str, key_names: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
        self._step = step
        self._key_names = key_names
        self._rows = rows

    def get(self, **key: Any) -> Any:
        """The row of a key, or None; the key's parts by the names of the table's key columns.

        Times without a zone are UTC.
        """
        if set(key) != set(self._key_names):
            raise NotFoundError(
                f"the key must have the parts of the key of '{self._step}'",
                expected=", ".join(self._key_names),
                got=", ".join(key),
                remedy="name the parts of the table's key",
            )
        wanted = [one_form(naive_utc(key[name])) for name in self._key_names]
        for row in self._rows:
            if [one_form(row["key"][name]) for name in self._key_names] == wanted:
                return next(value for name, value in row.items() if name != "key")
        return None

    def all(self) -> list[dict[str, Any]]:
        """All rows: {"key": {...}, "row": {...}}; times are UTC and have no zone."""
        return list(self._rows)


def titles(names: Sequence[str]) -> list[str]:
    """What the columns of a state are called: an aggregate that keeps one value by its own name.

    >>> titles(["visits.count", "mean.sum", "mean.count", "pane"])
    ['visits', 'mean.sum', 'mean.count', 'pane']
    """
    of = Counter(name.rpartition(".")[0] for name in names)
    alone = [name.rpartition(".")[0] for name in names]
    return [
        short if short and of[short] == 1 and short not in names else name
        for name, short in zip(names, alone, strict=True)
    ]


def _shown(struct: str, field: str, title: str) -> Column:
    column = F.col(f"{struct}.`{field}`")
    is_time = field in _TIMES or (struct == "key" and field in _ROW_TIMES)
    return (F.timestamp_micros(column) if is_time else column).alias(title)


def _end(micros: Column) -> Column:
    """When a row is forgotten; null if never."""
    return F.when(micros != _NEVER, F.timestamp_micros(micros)).alias(_EXPIRES)


def _literal(value: Any, kind: DataType) -> Column:
    if isinstance(value, datetime):  # as text, since pyspark takes a time for a local one
        value = str(naive_utc(value))
    if not isinstance(value, str):
        return F.lit(value).cast(kind)
    if isinstance(kind, BinaryType):
        return F.lit(_from_base64(value)).cast(kind)
    return F.lit(value).try_cast(kind)


def _from_base64(text: str) -> bytes | None:
    # strictly: most words would pass for base64 without its padding
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return None


def _no_value(name: str, value: Any, part: StructField) -> UsageError:
    kind = part.dataType.simpleString().upper()
    wanted = f"{kind} in base64" if isinstance(part.dataType, BinaryType) else kind
    return UsageError(
        f"the key {name} must be {wanted}",
        got=repr(value),
        remedy=f"give one, for instance --key {name}=..., or --key {name} for null",
    )
