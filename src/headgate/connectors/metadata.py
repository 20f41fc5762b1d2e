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
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headgate.base.errors import GraphError

_HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)
_TYPES: dict[str, DataType] = {
    "key": StringType(),
    "topic": StringType(),
    "partition": IntegerType(),
    "offset": LongType(),
    "timestamp": TimestampType(),
    "headers": _HEADERS,
    "publish_time": TimestampType(),
    "event_time": TimestampType(),
    "message_id": StringType(),
    "properties": MapType(StringType(), StringType()),
}
KAFKA = ("key", "topic", "partition", "offset", "timestamp", "headers")
PULSAR = ("key", "topic", "partition", "publish_time", "event_time", "message_id", "properties")
_FORM = re.compile(r"(?P<part>\w+)(?:\s+as\s+(?P<name>\w+))?", re.IGNORECASE)


class Metadata(NamedTuple):
    """A column that holds a part of the record."""

    column: str
    part: str


def parse_metadata(given: str | Sequence[str], parts: Sequence[str]) -> list[Metadata]:
    """The requested columns, of the parts that a record has.

    >>> parse_metadata("timestamp AS visited_at, key", KAFKA)
    [Metadata(column='visited_at', part='timestamp'), Metadata(column='key', part='key')]
    """
    items = given.split(",") if isinstance(given, str) else given
    found = []
    for item in (text.strip() for text in items):
        if not item:
            continue
        form = _FORM.fullmatch(item)
        example = "timestamp" if "timestamp" in parts else "publish_time"
        if form is None or form["part"].lower() not in parts:
            raise GraphError(
                f"metadata must be one of {', '.join(parts)}, or for example "
                f"'{example} AS seen_at'",
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
        fields.append(StructField(column, BinaryType() if binary else _TYPES[part]))
    return StructType(fields)


def check_raw(value: StructType) -> None:
    """Raise if this is not what a record's bytes can be: one column."""
    kinds = [f.dataType for f in value.fields]
    if len(kinds) != 1 or not isinstance(kinds[0], StringType | BinaryType):
        raise GraphError(
            "the schema of a raw record must be one column, 'value STRING' or 'value BINARY'",
            got=value.simpleString(),
            remedy="give it one column, and further parts of the record with metadata=",
        )
