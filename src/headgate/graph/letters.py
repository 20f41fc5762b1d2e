"""Letters: how rows of a side output that nobody reads become dead letters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate.connectors.base import Expr


@dataclass(frozen=True)
class Letters:
    """What a dead letter says of such a row, and how it can be given to the step again."""

    error: str
    """What went wrong, in capitals."""
    message: str
    """The same for people: SQL over the row's columns."""
    key: tuple[Expr, ...] = ()
    value: str | None = None
    """SQL over the row's columns; None is the row itself, as JSON."""
    of_record: bool = False
    """Whether the row has the topic, partition, offset and timestamp of its record in columns."""
    replay: Literal["record", "row"] | None = None
    """What a replay gives to the step: a record to decode, or a row of its first input."""


def literal(text: str) -> str:
    """A text in SQL.

    >>> print(literal("it's"))
    'it\\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
