"""The time to live of a table's rows: how long, by which clock, and what a change of it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from headgate.base.durations import Duration, parse_duration, spell_duration
from headgate.base.errors import GraphError, user_location
from headgate.graph.operation import Fit

_MS = timedelta(milliseconds=1)


@dataclass(frozen=True)
class Ttl:
    """How long after its last update a row is there, and the clock that says when that is."""

    length: timedelta
    clock: Literal["event", "processing"]

    @property
    def millis(self) -> int:
        """The length as the kernel has it."""
        return self.length // _MS

    def config(self) -> dict[str, Any]:
        """As it stands in the config of a step."""
        return {"ttl_ms": self.millis, "ttl_clock": self.clock}

    def __str__(self) -> str:
        return f"{spell_duration(self.length)} of {self.clock} time"


def ttl_of(step: str, given: Duration | None, *, by_event_time: bool) -> Ttl | None:
    """The time to live of a table, checked."""
    if given is None:
        if by_event_time:
            raise GraphError(
                "a table with event_time must have a ttl or versions",
                step=step,
                remedy='give it one, for instance ttl="7 days", or leave event_time out',
                location=user_location(),
            )
        return None
    length = parse_duration(given, what="ttl")
    if length < _MS:
        raise GraphError(
            "ttl must be greater than zero" if not length else "ttl must be 1 millisecond or more",
            step=step,
            got=repr(given),
            remedy="leave it out if rows are to be kept until they are deleted",
            location=user_location(),
        )
    return Ttl(length, "event" if by_event_time else "processing")


def fit_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> Fit:
    """Whether rows that were kept under one config of a lookup go on under another."""
    was, now = _read(old), _read(new)
    if was == now:
        return Fit()
    if was is None:
        note = f"rows are forgotten after {now}; those that are there count as updated now"
        return Fit(note=note)
    if now is None:
        return Fit(note="rows are not forgotten any more; those that are gone do not come back")
    if was.clock != now.clock:
        why = (
            f"the ttl went by {was.clock} time and goes by {now.clock} time, in which the times of "
            "the rows that are there are not known: start once without a ttl, then with the new one"
        )
        return Fit(conflicts=(why,))
    return Fit(note=f"the ttl was {was} and is {now}: it holds for a row from its next update on")


def _read(config: Mapping[str, Any]) -> Ttl | None:
    if config.get("ttl_ms") is None:
        return None
    return Ttl(timedelta(milliseconds=config["ttl_ms"]), config["ttl_clock"])
