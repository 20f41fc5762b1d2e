"""View: a frozen dataclass that pages show and REST serves; pydantic reads its JSON form off it.

Fields that Flink has keep Flink's names and form (``start-time``, milliseconds since 1970); all
others are in snake_case, with times in ISO 8601 and durations in seconds. So the type of a time or
duration says its form: a view has no plain ``datetime`` or ``timedelta``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, ClassVar

from pydantic import ConfigDict, PlainSerializer, WithJsonSchema

from headgate.home.times import to_iso, to_ms

_MS = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)


def _seconds(duration: timedelta) -> float:
    return duration / _SECOND


def _millis(duration: timedelta) -> int:
    return duration // _MS


IsoTime = Annotated[
    datetime,
    PlainSerializer(to_iso, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="serialization"),
]
"""A time, in JSON as ISO 8601 in UTC."""
Seconds = Annotated[timedelta, PlainSerializer(_seconds, return_type=float)]
"""A duration, in JSON in seconds."""
FlinkTime = Annotated[datetime, PlainSerializer(to_ms, return_type=int)]
"""A time, in JSON in milliseconds since 1970."""
FlinkDuration = Annotated[timedelta, PlainSerializer(_millis, return_type=int)]
"""A duration, in JSON in milliseconds."""


def json_name(name: str) -> Mapping[str, str]:
    """Metadata of a field whose name in JSON differs from the one in Python."""
    return {"serialization_alias": name}


@dataclass(frozen=True)
class View:
    """What a page or a REST response shows; immutable, and knows no file.

    >>> from dataclasses import field
    >>> from pydantic import TypeAdapter
    >>> @dataclass(frozen=True)
    ... class Example(View):
    ...     took: FlinkDuration | None = field(metadata=json_name("duration"))
    ...     waited: Seconds
    >>> example = Example(timedelta(seconds=2), timedelta(seconds=3))
    >>> TypeAdapter(Example).dump_json(example, by_alias=True)
    b'{"duration":2000,"waited":3.0}'
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid", use_attribute_docstrings=True
    )
