"""Parts of a record beside its value, as columns: "key AS visitor, timestamp"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headgate.errors import GraphError

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
PARTS: dict[str, DataType] = {
    "key": StringType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "headers": _HEADERS,
}
_FORM = re.compile(r"(?P<part>\w+)(?:\s+as\s+(?P<name>\w+))?", re.IGNORECASE)


class Metadata(NamedTuple):
    """A column that holds a part of the record."""

    column: str
    part: str


def parse_metadata(told: str | Sequence[str]) -> list[Metadata]:
    """The columns that were asked for.

    >>> parse_metadata("timestamp AS visited_at, key")
    [Metadata(column='visited_at', part='timestamp'), Metadata(column='key', part='key')]
    """
    items = told.split(",") if isinstance(told, str) else told
    found = []
    for item in (text.strip() for text in items):
        if not item:
            continue
        form = _FORM.fullmatch(item)
        if form is None or form["part"].lower() not in PARTS:
            raise GraphError(
                "the metadata is not a part of a record",
                expected=f"one of {', '.join(PARTS)}, or for example 'timestamp AS seen_at'",
                got=repr(item),
                remedy="name the part, and the column with AS",
            )
        part = form["part"].lower()
        found.append(Metadata(form["name"] or part, part))
    return found


def with_metadata(value: StructType, metadata: Sequence[Metadata], *, raw: bool) -> StructType:
    """The value's columns and then the metadata's; a raw record's key is bytes like its value."""
    fields = list(value.fields)
    for column, part in metadata:
        if column in [field.name for field in fields]:
            raise GraphError(
                f"the record's {part} would be a second column '{column}'",
                remedy=f"give it another name: '{part} AS record_{part}'",
            )
        binary = raw and part == "key" and isinstance(value.fields[0].dataType, BinaryType)
        fields.append(StructField(column, BinaryType() if binary else PARTS[part]))
    return StructType(fields)
