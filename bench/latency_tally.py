"""Owns what a latency run counts: every order exactly once, and how long each took.

A run with an order that is lost, doubled, or in the wrong topic is void: its times do not count.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

_NOT_SEEN = -1.0


@dataclass(frozen=True)
class Spread:
    """Milliseconds from produce to visible, of the orders sent in one measured stretch."""

    orders: int
    p50: float
    p90: float
    p99: float
    max: float


@dataclass(frozen=True)
class Verdict:
    """How many orders went in, and what of them did not come out as it must."""

    sent: int
    lost: int
    doubled: int
    misplaced: int
    unknown: int

    @property
    def void(self) -> bool:
        """Whether the run's times count for nothing."""
        return self.reason() != ""

    def reason(self) -> str:
        """What is wrong, or nothing.

        >>> Verdict(10, 1, 2, 0, 0).reason()
        '1 lost, 2 doubled of 10 orders'
        """
        wrong = {name: count for name, count in asdict(self).items() if name != "sent" and count}
        said = ", ".join(f"{count:,} {name}" for name, count in wrong.items())
        return f"{said} of {self.sent:,} orders" if said else ""


class Tally:
    """Which of the orders 0 to `sent` came out, where, and when.

    >>> tally = Tally(2, lambda order: "out")
    >>> tally.see(0, "out", 40.0)
    >>> tally.verdict().reason()
    '1 lost of 2 orders'
    """

    def __init__(self, sent: int, topic_of: Callable[[int], str]) -> None:
        self._topic_of = topic_of
        self._millis = array("d", [_NOT_SEEN]) * sent
        self._left = sent
        self._doubled = self._misplaced = self._unknown = 0

    @property
    def complete(self) -> bool:
        """Whether each order came out at least once."""
        return self._left == 0

    def see(self, order: int, topic: str, millis: float) -> None:
        """An order was read from a topic, so long after it was produced."""
        if not 0 <= order < len(self._millis):
            self._unknown += 1
            return
        if self._topic_of(order) != topic:
            self._misplaced += 1
        if self._millis[order] != _NOT_SEEN:
            self._doubled += 1
            return
        # clocks of one machine: a time below zero is a rounding, and not "not seen"
        self._millis[order] = max(0.0, millis)
        self._left -= 1

    def verdict(self) -> Verdict:
        """What is right and wrong so far."""
        return Verdict(len(self._millis), self._left, self._doubled, self._misplaced, self._unknown)

    def spread(self, first: int, end: int) -> Spread | None:
        """The times of the orders first to end; None if none of them came out."""
        return spread_of([time for time in self._millis[first:end] if time != _NOT_SEEN])


def spread_of(millis: Sequence[float]) -> Spread | None:
    """The percentiles of some times; None if there are none.

    >>> spread_of([3.0, 1.0, 2.0])
    Spread(orders=3, p50=2.0, p90=3.0, p99=3.0, max=3.0)
    """
    if not millis:
        return None
    found = sorted(millis)
    return Spread(len(found), *(percentile(found, p) for p in (50, 90, 99)), found[-1])


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The least value that so many percent of the ordered values do not exceed (nearest rank)."""
    return ordered[max(1, math.ceil(len(ordered) * percent / 100)) - 1]
