"""When a running aggregate tells its changes, and for how long it keeps a key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from headgate.base.durations import Duration, parse_duration, spell_duration
from headgate.base.errors import GraphError, user_location
from headgate.graph.operation import Fit

Clock: TypeAlias = Literal["event", "processing"]
_MS, _US = timedelta(milliseconds=1), timedelta(microseconds=1)


@dataclass(frozen=True)
class Emit:
    """Changes are emitted whenever a clock passes a multiple of an interval."""

    interval: timedelta
    clock: Clock

    def config(self) -> dict[str, Any]:
        """As it stands in the config of a step."""
        return {"interval_us": self.interval // _US, "clock": self.clock}

    def __str__(self) -> str:
        return f"every {spell_duration(self.interval)} of {self.clock} time"


@dataclass(frozen=True)
class Kept:
    """A key is forgotten when it has got no rows for so long."""

    length: timedelta
    clock: Clock

    def config(self) -> dict[str, Any]:
        """As it stands in the config of a step."""
        return {"ttl_ms": self.length // _MS, "clock": self.clock}

    def __str__(self) -> str:
        return f"{spell_duration(self.length)} of {self.clock} time"


def kept_of(step: str, ttl: Duration | None, *, timed: bool) -> Kept | None:
    """For how long keys are kept; by event time if the stream has one."""
    if ttl is None:
        return None
    length = parse_duration(ttl, what="ttl")
    if length < _MS or length.microseconds % 1000:
        raise GraphError(
            "ttl must be a whole number of milliseconds above 0",
            step=step,
            got=repr(ttl),
            remedy='give a duration such as "7 days", or leave it out',
            location=user_location(),
        )
    return Kept(length, "event" if timed else "processing")


def fit_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> Fit:
    """Whether keys that were kept go on under another ttl or emit."""
    was, now = (config["ttl"] for config in (old, new))
    notes = []
    if was is not None and now is not None and was["clock"] != now["clock"]:
        clocks = f"its ttl went by {was['clock']} time and goes by {now['clock']} time"
        return Fit((f"{clocks}: start once without a ttl, then with the new one",))
    if was is None and now is not None:
        notes.append("keys that are there count as touched now")
    elif now is None and was is not None:
        notes.append("keys are not forgotten any more; those that are gone do not come back")
    elif was != now:
        notes.append("the new ttl holds for a key from its next rows on")
    if old["emit"] is not None and new["emit"] is None:
        notes.append("what has changed since the last update is emitted with the key's next rows")
    return Fit(note="; ".join(notes))
