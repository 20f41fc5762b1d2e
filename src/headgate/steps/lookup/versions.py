"""Versions: how long the rows of a table are kept beside newer ones of the same key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headgate.base.durations import Duration, parse_duration, spell_duration
from headgate.base.errors import GraphError, user_location

_MS = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Versions:
    """Keep old versions of table rows until the watermark is this far past, for `as_of` lookups.

    The version that was valid at that moment stays until a newer one replaces it.

    >>> Versions(keep="7 days").keep
    '7 days'
    """

    keep: Duration

    def __post_init__(self) -> None:
        parse_duration(self.keep, what="Versions.keep")

    @property
    def millis(self) -> int:
        """The same as a number of milliseconds."""
        return parse_duration(self.keep) // _MS

    def config(self) -> dict[str, Any]:
        """How it is stored in a step's config."""
        return {"keep_ms": self.millis}

    def __str__(self) -> str:
        return f"kept for {spell_duration(parse_duration(self.keep))}"


def versions_of(step: str, given: object, *, timed: bool, ttl: bool) -> Versions | None:
    """The versions of a table, checked."""
    if given is None:
        return None
    if not isinstance(given, Versions):
        raise GraphError(
            "versions must be hg.Versions(...)",
            step=step,
            got=repr(given),
            remedy='write versions=hg.Versions(keep="7 days")',
            location=user_location(),
        )
    if not timed:
        raise GraphError(
            "a table with versions must have event_time: a version is valid from its time on",
            step=step,
            remedy='name the column: event_time=hg.event_time("valid_from")',
            location=user_location(),
        )
    if ttl:
        raise GraphError(
            "versions and ttl exclude each other",
            step=step,
            remedy="leave ttl out: keep says how long versions are there",
            location=user_location(),
        )
    return given
