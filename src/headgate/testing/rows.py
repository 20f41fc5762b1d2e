"""JSON records back as rows: left-out nulls filled in, values with their types."""

from __future__ import annotations

import json
from base64 import b64decode
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_EPOCH = datetime(1970, 1, 1)


def row_of(record: str | None, schema: StructType) -> dict[str, Any]:
    """A JSON record as a row.

    >>> row_of('{"id": 1}', StructType().add("id", "long").add("name", "string"))
    {'id': 1, 'name': None}
    >>> of = MapType(DateType(), BinaryType())
    >>> row_of('{"of": {"1": "AQI="}, "is": "NaN"}', StructType().add("of", of).add("is", "double"))
    {'of': {datetime.date(1970, 1, 2): b'\\x01\\x02'}, 'is': nan}
    """
    # numbers as they are written: a float has fewer digits than a decimal may have
    found: dict[str, Any] = _typed(json.loads(record or "{}", parse_float=Decimal), schema)
    return found


def _typed(value: Any, kind: DataType) -> Any:
    """A JSON value as the Python value of a type."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        return {f.name: _typed(value.get(f.name), f.dataType) for f in kind.fields}
    if isinstance(kind, ArrayType):
        return [_typed(v, kind.elementType) for v in value]
    if isinstance(kind, MapType):
        return {_key(k, kind.keyType): _typed(v, kind.valueType) for k, v in value.items()}
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        return datetime.fromisoformat(value)
    if isinstance(kind, DateType):
        return date.fromisoformat(value)
    if isinstance(kind, DecimalType):
        return Decimal(str(value))
    if isinstance(kind, FractionalType):  # NaN and infinities are texts
        return float(value)
    if isinstance(kind, BinaryType):
        return b64decode(value)
    return value


def _key(text: str, kind: DataType) -> Any:
    """A key of a map, which Spark writes as the text of the value that it has inside."""
    if isinstance(kind, BooleanType):
        return text == "true"
    if isinstance(kind, IntegralType):
        return int(text)
    if isinstance(kind, DateType):
        return _EPOCH.date() + timedelta(days=int(text))
    if isinstance(kind, (TimestampType, TimestampNTZType)):
        time = _EPOCH + timedelta(microseconds=int(text))
        return time.replace(tzinfo=UTC) if isinstance(kind, TimestampType) else time
    # of bytes there is nothing in the text that one could read
    return text if isinstance(kind, BinaryType) else _typed(text, kind)
