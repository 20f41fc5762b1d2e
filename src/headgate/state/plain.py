"""Rows of state as plain Python values and as JSON, with times in UTC wherever this runs."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)


def plain_rows(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows of a state frame as plain values; times are UTC and have no zone."""
    return [plain(row) for row in in_utc(frame).collect()]


def in_utc(frame: DataFrame) -> DataFrame:
    """The same rows, ready to be collected: their times are UTC and have no zone."""
    # pyspark makes a TIMESTAMP a local time. To convert that back would come too late for keys of
    # maps: of two that are an hour apart when clocks go back, one would be gone.
    return frame.select(
        *(F.col(f"`{f.name}`").cast(_without_zone(f.dataType)).alias(f.name) for f in frame.schema)
    )


def plain(value: Any) -> Any:
    """A collected value with dicts for rows, at any depth; keys of maps stay as they are."""
    if isinstance(value, Row):
        return {k: plain(v) for k, v in value.asDict().items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


def naive_utc(value: Any) -> Any:
    """A time as state has it: UTC, without a zone; what is no time stays as it is.

    >>> naive_utc(datetime.fromisoformat("2026-01-01T14:00+02:00"))
    datetime.datetime(2026, 1, 1, 12, 0)
    """
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    return value


def one_form(value: Any) -> Any:
    """A part of a key in which there is one zero and one NaN, at any depth.

    >>> one_form([-0.0, float("nan")]) == one_form([0.0, -float("nan")])
    True
    """
    if isinstance(value, float):
        # one and the same object: a NaN is found by what it is, since it equals nothing
        return math.nan if math.isnan(value) else value + 0.0
    if isinstance(value, (list, tuple)):
        return type(value)(map(one_form, value)) if type(value) in (list, tuple) else value
    if isinstance(value, dict):
        return {name: one_form(part) for name, part in value.items()}
    return value


def json_value(value: Any) -> Any:
    """A value as JSON can have it: bytes in base64, decimals and times as text.

    >>> json_value({datetime(2026, 1, 1): [b"abc", Decimal("1E+2")], 7: math.nan})
    {'2026-01-01 00:00:00': ['YWJj', '100'], '7': 'NaN'}
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, Row):
        value = value.asDict()
    if isinstance(value, dict):
        return {_json_key(k): json_value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_value(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else json.dumps(value)  # JSON has no such numbers
    if isinstance(value, (bytes, bytearray)):
        return b64encode(value).decode()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _json_key(key: Any) -> str:
    """A key of a map, which is always text in JSON."""
    shown = json_value(key)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _without_zone(kind: DataType) -> DataType:
    if isinstance(kind, TimestampType):
        return TimestampNTZType()
    if isinstance(kind, StructType):
        return StructType(
            [StructField(f.name, _without_zone(f.dataType), f.nullable) for f in kind.fields]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_without_zone(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        key, value = _without_zone(kind.keyType), _without_zone(kind.valueType)
        return MapType(key, value, kind.valueContainsNull)
    return kind
