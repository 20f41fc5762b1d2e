"""View: a frozen dataclass that is told as JSON, and the JSON schema that it keeps to.

Fields that Flink has keep Flink's names and form (``start-time``, milliseconds since 1970); all
others are in snake_case, with times in ISO 8601 and durations in seconds.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headgate.home.times import to_iso, to_ms

_MS = timedelta(milliseconds=1)


def flink(name: str) -> Any:
    """Metadata of a field that is told as Flink tells it: its name, times in milliseconds."""
    return {"json": name, "flink": True}


def as_name(name: str) -> Any:
    """Metadata of a field whose name in JSON is not that in Python."""
    return {"json": name}


@dataclass(frozen=True)
class View:
    """What a page or a REST answer shows; immutable, and knows no file.

    >>> @dataclass(frozen=True)
    ... class Example(View):
    ...     took: timedelta | None = dataclasses.field(metadata=flink("duration"))
    ...     waited: timedelta
    >>> Example(timedelta(seconds=2), timedelta(seconds=3)).to_json()
    {'duration': 2000, 'waited': 3.0}
    """

    def to_json(self) -> dict[str, Any]:
        """As the REST interface gives it."""
        return {
            _name(field): _plain(getattr(self, field.name), "flink" in field.metadata)
            for field in dataclasses.fields(self)
        }


def _name(field: dataclasses.Field[Any]) -> str:
    return str(field.metadata.get("json", field.name))


def _plain(value: Any, flink: bool) -> Any:
    if isinstance(value, View):
        return value.to_json()
    if isinstance(value, datetime):
        return to_ms(value) if flink else to_iso(value)
    if isinstance(value, timedelta):
        return value // _MS if flink else value / timedelta(seconds=1)
    if isinstance(value, Mapping):
        return {str(name): _plain(one, flink) for name, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(one, flink) for one in value]
    return value


def schema_of(view: type[View], into: dict[str, Any]) -> dict[str, Any]:
    """A reference to a view's JSON schema; it and all that it needs are put into `into`."""
    name = view.__name__
    if name not in into:
        into[name] = {}  # a view may hold itself
        hints = typing.get_type_hints(view)
        fields = dataclasses.fields(view)
        into[name] = {
            "type": "object",
            "description": (view.__doc__ or name).split("\n")[0],
            "properties": {
                _name(f): _schema(hints[f.name], "flink" in f.metadata, into) for f in fields
            },
            "required": [_name(field) for field in fields],
            "additionalProperties": False,
        }
    return {"$ref": f"#/components/schemas/{name}"}


def _schema(hint: Any, flink: bool, into: dict[str, Any]) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema(one, flink, into) for one in args]}
    if origin is tuple:
        return {"type": "array", "items": _schema(args[0], flink, into)}
    if origin is not None and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema(args[1], flink, into)}
    if origin is typing.Literal:
        return {"type": "string", "enum": list(args)}
    if hint is datetime:
        return {"type": "integer"} if flink else {"type": "string", "format": "date-time"}
    if hint is timedelta:
        return {"type": "integer"} if flink else {"type": "number"}
    if isinstance(hint, type) and issubclass(hint, View):
        return schema_of(hint, into)
    plain = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
    return {"type": plain[hint]} if hint in plain else {}
