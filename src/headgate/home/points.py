"""Point: what a job did in a stretch of time, in numbers that can be added up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, TypeVar

GAUGES = ("duration_ms", "behind", "watermark_lag_ms", "state_rows", "state_bytes")
"""What each batch has one number of: how long it took, and how things stood after it."""

Sinks: TypeAlias = tuple[str, ...]
"""Sinks whose rows come from the same sources, and which therefore have the same latencies."""

Histogram: TypeAlias = Mapping[int, int]
"""How many records were in each bucket of latencies (``headgate.home.latency``)."""

_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class Gauge:
    """A number that batches have: how often it was seen, and what it was.

    >>> seen = Gauge.of(5).plus(Gauge.of(2))
    >>> seen, seen.mean
    (Gauge(count=2, total=7, least=2, most=5, last=2), 3.5)
    """

    count: int
    total: int
    least: int
    most: int
    last: int

    @staticmethod
    def of(value: int) -> Gauge:
        """One number."""
        return Gauge(1, value, value, value, value)

    def plus(self, later: Gauge) -> Gauge:
        """With the numbers of a later time."""
        return Gauge(
            self.count + later.count,
            self.total + later.total,
            min(self.least, later.least),
            max(self.most, later.most),
            later.last,
        )

    @property
    def mean(self) -> float:
        """Their average."""
        return self.total / self.count


@dataclass(frozen=True, slots=True)
class Point:
    """A stretch of time: batches that ended in it, and what happened to the job.

    >>> one = Point(batches=1, records_in=10, gauges={"behind": Gauge.of(3)})
    >>> both = one.plus(Point(batches=1, records_in=5, marks={"failed": 1}))
    >>> both.records_in, both.gauges["behind"].last, dict(both.marks)
    (15, 3, {'failed': 1})
    """

    up_ms: int = 0
    """How long the job's query ran."""
    batches: int = 0
    records_in: int = 0
    records_out: int = 0
    gauges: Mapping[str, Gauge] = field(default_factory=dict)
    """By the names in GAUGES; what no batch had is missing."""
    latency: Mapping[Sinks, Histogram] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)
    """Events by kind: ``started``, ``failed``, ``crashed`` and so on."""

    def plus(self, later: Point) -> Point:
        """With what was at a later time."""
        return Point(
            self.up_ms + later.up_ms,
            self.batches + later.batches,
            self.records_in + later.records_in,
            self.records_out + later.records_out,
            _gauges(self.gauges, later.gauges),
            _latency(self.latency, later.latency),
            counted(self.marks, later.marks) if later.marks else self.marks,
        )

    def histogram(self, sink: str) -> dict[int, int]:
        """The latencies of one sink."""
        found: dict[int, int] = {}
        for sinks, counts in self.latency.items():
            if sink in sinks:
                found = counted(found, counts)
        return found


def total(points: Iterable[Point]) -> Point:
    """Points of one time after the other as one."""
    found = Point()
    for point in points:
        found = found.plus(point)
    return found


def counted(one: Mapping[_Key, int], other: Mapping[_Key, int]) -> dict[_Key, int]:
    """Both counts together."""
    found = dict(one)
    for key, count in other.items():
        found[key] = found.get(key, 0) + count
    return found


def _gauges(early: Mapping[str, Gauge], late: Mapping[str, Gauge]) -> Mapping[str, Gauge]:
    if not late or not early:
        return early or late
    found = dict(early)
    for name, gauge in late.items():
        found[name] = found[name].plus(gauge) if name in found else gauge
    return found


def _latency(
    early: Mapping[Sinks, Histogram], late: Mapping[Sinks, Histogram]
) -> Mapping[Sinks, Histogram]:
    if not late or not early:
        return early or late
    found = dict(early)
    for sinks, counts in late.items():
        found[sinks] = counted(found[sinks], counts) if sinks in found else counts
    return found
