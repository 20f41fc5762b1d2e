"""Keys as tests write them: a value, a tuple, or parts by name, as the kernel would have them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import Row

from headgate.steps.process.records import row_class


def key_row(key: Any) -> Row:
    """A key as handlers see it.

    >>> key_row({"at": datetime(2026, 1, 1, tzinfo=UTC), "size": -0.0})
    Row(at=datetime.datetime(2026, 1, 1, 0, 0), size=0.0)
    """
    if isinstance(key, Row) and hasattr(key, "__fields__"):
        names, parts = list(key.__fields__), tuple(key)
    elif isinstance(key, Mapping):
        names, parts = [str(name) for name in key], tuple(key.values())
    else:
        parts = tuple(key) if isinstance(key, tuple) else (key,)
        names = ["key"] if len(parts) == 1 else [f"key{n}" for n in range(len(parts))]
    made: Row = row_class(names)._of(*map(_part, parts))  # type: ignore[attr-defined]
    return made


def _part(value: Any) -> Any:
    """What the kernel makes of a part: times are UTC, NaN is NaN, and there is one zero."""
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, float):
        # one and the same object: a NaN is found by what it is, since it equals nothing
        return math.nan if math.isnan(value) else value + 0.0
    if isinstance(value, Row) and hasattr(value, "__fields__"):
        return row_class(list(value.__fields__))._of(*map(_part, value))  # type: ignore[attr-defined]
    if isinstance(value, list):
        return [_part(v) for v in value]
    return bytes(value) if isinstance(value, bytearray) else value
