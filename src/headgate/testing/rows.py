"""JSON records back as rows: left-out nulls filled in, times and numbers with their types."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    StructType,
    TimestampType,
)


def typed(value: Any, kind: DataType) -> Any:
    """A JSON value as the Python value of a type.

    >>> typed({"id": 1}, StructType().add("id", "long").add("name", "string"))
    {'id': 1, 'name': None}
    """
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {f.name: typed(value.get(f.name), f.dataType) for f in kind.fields}
    if isinstance(kind, ArrayType):
        return [typed(v, kind.elementType) for v in value]
    if isinstance(kind, MapType):
        return {k: typed(v, kind.valueType) for k, v in value.items()}
    if isinstance(kind, TimestampType):
        return datetime.fromisoformat(value)
    if isinstance(kind, DateType):
        return date.fromisoformat(value)
    if isinstance(kind, DecimalType):
        return Decimal(str(value))
    return value
