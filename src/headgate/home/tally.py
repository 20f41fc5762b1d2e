"""What is known of all checkpoints of a run without reading them: counts, and how long they took.

Each record carries the tally up to itself, so that totals come from the newest record alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the buckets of durations, in seconds; one more bucket is for what is longer.

They are part of the format: another list needs another name in the record.
"""


@dataclass(frozen=True)
class Durations:
    """A histogram of durations.

    >>> took = Durations().plus(90).plus(1500)
    >>> took.count, took.seconds, took.cumulative()[:2], took.cumulative()[-1]
    (2, 1.59, [(0.1, 1), (0.25, 1)], (inf, 2))
    """

    total_ms: int = 0
    buckets: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)

    @property
    def count(self) -> int:
        """How many durations there are."""
        return sum(self.buckets)

    @property
    def seconds(self) -> float:
        """Their sum."""
        return self.total_ms / 1000

    def plus(self, ms: int) -> Durations:
        """With one more."""
        at = bisect_left(BOUNDS, ms / 1000)
        more = tuple(n + (i == at) for i, n in enumerate(self.buckets))
        return Durations(self.total_ms + ms, more)

    def cumulative(self) -> list[tuple[float, int]]:
        """How many are not longer than each bound, as Prometheus counts them."""
        bounds = (*BOUNDS, float("inf"))
        return list(zip(bounds, accumulate(self.buckets), strict=True))

    def to_json(self) -> dict[str, Any]:
        """As it stands in a record."""
        return {"total_ms": self.total_ms, "buckets": list(self.buckets)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Durations:
        """From a record."""
        return Durations(int(data["total_ms"]), tuple(int(n) for n in data["buckets"]))


@dataclass(frozen=True)
class Tally:
    """The checkpoints of a run so far; that with which a fork begins is its parent's."""

    completed: int = 0
    durations: Durations = Durations()
    """End to end; of a run that an older Headgate began, since this one drives it."""
    phases: Mapping[str, Durations] = field(default_factory=dict)

    def plus(self, duration_ms: int | None, phases: Mapping[str, int]) -> Tally:
        """With one more checkpoint; one that was recovered after a crash has no times."""
        took = self.durations if duration_ms is None else self.durations.plus(duration_ms)
        spent = {name: self.phases.get(name, Durations()).plus(ms) for name, ms in phases.items()}
        return Tally(self.completed + 1, took, {**self.phases, **spent})

    def to_json(self) -> dict[str, Any]:
        """As it stands in a record."""
        return {
            "completed": self.completed,
            "durations": self.durations.to_json(),
            "phases": {name: spent.to_json() for name, spent in self.phases.items()},
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Tally:
        """From a record."""
        phases = data.get("phases") or {}
        return Tally(
            int(data["completed"]),
            Durations.from_json(data["durations"]),
            {name: Durations.from_json(spent) for name, spent in phases.items()},
        )
