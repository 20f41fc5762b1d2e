"""Record: what is written to a topic by hand, whatever system it lives in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Record:
    """A record to append: a value, or None to delete what its key names.

    >>> Record('{"id": 1}')
    Record(value='{"id": 1}', key=None)
    """

    value: str | None
    key: str | None = None
