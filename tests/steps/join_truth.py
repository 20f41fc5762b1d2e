"""Joins and deduplication in plain Python, given the watermark of each batch.

Nothing is ever forgotten here: what a step forgets must make no difference.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

NEVER, ENDED = float("-inf"), float("inf")


@dataclass(frozen=True)
class Row:
    """A row of a side; times are in seconds."""

    side: int
    id: int
    key: str | None
    time: int | None
    value: int


@dataclass(frozen=True)
class JoinCase:
    """What a join was asked for: bounds, or windows of a size that begin every slide."""

    lower: int = 0
    upper: int = 0
    size: int = 0
    slide: int = 0
    offset: int = 0
    least: int | None = None
    """The right row's value less the left one's must be at least so much."""
    unmatched: tuple[str, str] = ("drop", "drop")

    def places(self, row: Row) -> list[float]:
        """The times at which a row stands: its own, or the last moment of each of its windows."""
        if row.time is None:
            return []
        if not self.size:
            return [row.time]
        first = (row.time - self.offset) // self.slide * self.slide + self.offset
        starts = range(first, row.time - self.size, -self.slide)
        return [start + self.size - 1e-6 for start in starts]

    def last_match(self, side: int, place: float) -> float:
        """The latest time of a row that matches one at a place."""
        return place + (self.upper if side == 0 else -self.lower)

    def match(self, left: Row, right: Row, places: tuple[float, float]) -> bool:
        """Whether two rows are a pair."""
        if left.key is None or left.key != right.key:
            return False
        if not self.lower <= places[1] - places[0] <= self.upper:
            return False
        return self.least is None or right.value - left.value >= self.least


Result = tuple[str, int | None, int | None, int | None]
"""Output, left id, right id, and for joins in windows the end of the window."""


@dataclass
class JoinTruth:
    """All rows that were on time, and which of them had a match."""

    case: JoinCase
    before: float = NEVER
    rows: list[dict[str | None, list[tuple[float, Row]]]] = field(
        default_factory=lambda: [defaultdict(list), defaultdict(list)]
    )
    matched: set[tuple[float, int, int]] = field(default_factory=set)
    gone: set[tuple[float, int, int]] = field(default_factory=set)
    out: list[Result] = field(default_factory=list)

    def batch(self, rows: Sequence[Row], now: float) -> None:
        """Rows that came, under a watermark."""
        for row in rows:
            places = [place for place in self.case.places(row) if place >= self.before]
            if not places:
                ids = (row.id, None) if row.side == 0 else (None, row.id)
                self.out.append(("late", *ids, None))
            for place in places:
                self._pair(row, place)
                self.rows[row.side][row.key].append((place, row))
        self._leave(now)
        self.before = now

    def _pair(self, row: Row, place: float) -> None:
        for other_place, other in self.rows[1 - row.side][row.key]:
            (left, at), (right, to) = (
                ((row, place), (other, other_place))
                if row.side == 0
                else ((other, other_place), (row, place))
            )
            if self.case.match(left, right, (at, to)):
                self.matched |= {(place, row.side, row.id), (other_place, other.side, other.id)}
                self.out.append(("out", left.id, right.id, self._end(place)))

    def _leave(self, now: float) -> None:
        for side, what in enumerate(self.case.unmatched):
            for place, row in chain.from_iterable(self.rows[side].values()):
                me = (place, side, row.id)
                if what == "drop" or me in self.matched or me in self.gone:
                    continue
                if row.key is None or self.case.last_match(side, place) < now:
                    self.gone.add(me)
                    output = (
                        "out" if what == "null" else ("unmatched_left", "unmatched_right")[side]
                    )
                    ids = (row.id, None) if side == 0 else (None, row.id)
                    self.out.append((output, *ids, self._end(place)))

    def _end(self, place: float) -> int | None:
        return round(place) if self.case.size else None


@dataclass
class DedupeTruth:
    """The time of the row of each key that passed last."""

    within: int | None
    passed: dict[Any, float] = field(default_factory=dict)
    out: list[Result] = field(default_factory=list)

    def batch(self, rows: Sequence[Row], now: float) -> None:
        """Rows that came, in the order of their source, under a watermark."""
        for row in rows:
            time = now if row.time is None else row.time
            first = self.passed.get(row.key)
            passes = first is None or (self.within is not None and time >= first + self.within)
            if passes:
                self.passed[row.key] = time
            self.out.append(("out" if passes else "duplicates", row.id, None, None))
        if self.within is not None:
            over = [key for key, time in self.passed.items() if time + self.within <= now]
            for key in over:
                del self.passed[key]


def in_order(rows: Iterable[Row]) -> Iterator[Row]:
    """Rows as they were sent."""
    yield from sorted(rows, key=lambda row: row.id)
