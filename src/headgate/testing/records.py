"""What a test sends: records of a topic from dicts, dataclasses, text, and deletions."""

from __future__ import annotations

import dataclasses
import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

from headgate.base.errors import UsageError
from headgate.connectors.log.files import Record as LogRecord

Record: TypeAlias = Mapping[str, Any] | object


@dataclasses.dataclass(frozen=True)
class Deleted:
    """A record without a value: it deletes its key from a table.

    >>> Deleted(1)
    Deleted(key=1)
    """

    key: Any


def log_record(record: Record, names: Sequence[str]) -> LogRecord:
    """A record as its topic has it; `names` are the columns of its key."""
    if isinstance(record, Deleted):
        return LogRecord(value=None, key=_json_key(record.key))
    if isinstance(record, str):
        return LogRecord(value=record, key=None)
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        data: Mapping[str, Any] = dataclasses.asdict(record)
    elif isinstance(record, Mapping):
        data = record
    else:
        raise UsageError(
            "a record must be a dict, a dataclass or text",
            got=repr(record),
            remedy="send one of them",
        )
    key = None
    if names:
        parts = {name: data.get(name) for name in names}
        key = _json_key(next(iter(parts.values())) if len(parts) == 1 else parts)
    return LogRecord(value=json.dumps(data, default=_json), key=key)


def _json_key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=_json)


def _json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return b64encode(value).decode()  # as Spark reads BINARY columns
    return str(value)
