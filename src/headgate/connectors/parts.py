"""The parts of a record that a sink writes, and the types that they can be made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pyspark.sql.types import BinaryType, DataType, MapType, StringType, TimestampType

from headgate.base.errors import GraphError

TEXT = (StringType, BinaryType)


class Fit(NamedTuple):
    """What a part can be made of, and its name for people."""

    fits: Callable[[DataType], bool]
    expected: str


VALUE = Fit(lambda kind: isinstance(kind, TEXT), "STRING or BINARY")
TIME = Fit(lambda kind: isinstance(kind, TimestampType), "a TIMESTAMP")


def is_text_map(kind: DataType, *values: type[DataType]) -> bool:
    """Whether this is a map from text to one of these types."""
    return (
        isinstance(kind, MapType)
        and isinstance(kind.keyType, StringType)
        and isinstance(kind.valueType, values)
    )


def written_type(part: str, kind: DataType, parts: Mapping[str, Fit]) -> DataType:
    """The type in which a part is written; a key of another type than text is written as text.

    >>> from pyspark.sql.types import LongType
    >>> written_type("key", LongType(), {}), written_type("value", BinaryType(), {"value": VALUE})
    (StringType(), BinaryType())
    """
    if part == "key":
        return kind if isinstance(kind, TEXT) else StringType()
    if not parts[part].fits(kind):
        raise GraphError(
            f"the record's {part} must be {parts[part].expected}",
            got=kind.simpleString().upper(),
            remedy="convert it, or leave it out",
        )
    return kind
