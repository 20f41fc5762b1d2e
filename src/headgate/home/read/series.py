"""Series: the points of a range of time, in steps as people count them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.home.points import Point

STEPS = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200, 86400, 604800,
)  # fmt: skip
"""Seconds of a point; each is a multiple of every width of files that is not greater."""
MARKS = ("started", "restarted", "reset", "finished", "stopped", "cancelled", "failed")
"""Events that are marked; ``crashed`` is one more, of drivers that are gone without a word."""


LASTS = {"15m": 900, "1h": 3600, "6h": 21_600, "24h": 86_400, "7d": 604_800, "all": None}
"""Names of ranges up to now, with their seconds."""


@dataclass(frozen=True)
class TimeRange:
    """A range of time: the last seconds, or between two times; without any of them, all there is.

    >>> TimeRange.of("1h").bounds(5000, lambda: 0.0)
    (1400, 5000)
    >>> TimeRange(since=100, until=200).bounds(5000, lambda: 0.0)
    (100, 200)
    """

    last: float | None = None
    since: float | None = None
    until: float | None = None

    @staticmethod
    def of(name: str) -> TimeRange:
        """A range by its name in LASTS."""
        return TimeRange(last=LASTS[name])

    @property
    def follows(self) -> bool:
        """Whether it ends now, whenever that is."""
        return self.until is None

    def bounds(self, newest: float, first: Callable[[], float]) -> tuple[float, float]:
        """Where it begins and ends, if the newest that is known ends there."""
        end = newest if self.until is None else self.until
        if self.since is not None:
            return min(self.since, end), max(self.since, end)
        return (first() if self.last is None else end - self.last), end


@dataclass(frozen=True)
class Series:
    """The points of a range; where nothing is known there is none."""

    begin: int
    """Where the first point would begin, in seconds since 1970."""
    end: float
    step: int
    """Seconds that a point covers."""
    points: dict[int, Point]
    """In their order, by the second at which they begin."""
    known: float | None
    """Up to when anything is known of the job; None if nothing is."""
    open: bool
    """Whether a driver was at work then."""


def step_for(begin: float, end: float, most: int) -> int:
    """The least step with which a range has at most so many points.

    >>> step_for(0, 3600, 720), step_for(0, 7 * 86400, 720)
    (5, 1200)
    """
    return next((step for step in STEPS if (end - begin) / step <= most), STEPS[-1])
