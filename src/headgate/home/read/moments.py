"""What is shown of a job over time: rates, lags, times and sizes, made of a series' points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median_low

from headgate.home.latency import longest, quantile
from headgate.home.points import Gauge, Point, Sinks
from headgate.home.read.series import Series

_IDLE = 3
"""So many times as long as usual without a batch, and the job had nothing to do."""


@dataclass(frozen=True)
class Latency:
    """Of a sink's records, in milliseconds; a bucket counts with its longest."""

    p50_ms: int
    p99_ms: int


@dataclass(frozen=True)
class Moment:
    """A job in one step of time; None where nothing is known, as where no batch ended."""

    at: int
    """When it begins, in seconds since 1970."""
    running: bool
    """Whether the job's query ran."""
    records_in_per_second: float | None = None
    records_out_per_second: float | None = None
    busy: float | None = None
    """The share of the time in which batches ran."""
    gauges: Mapping[str, Gauge] = field(default_factory=dict)
    latency: Mapping[str, Latency] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)

    def mean(self, name: str) -> float | None:
        """The average of a gauge."""
        return self.gauges[name].mean if name in self.gauges else None

    def most(self, name: str) -> int | None:
        """The greatest value of a gauge."""
        return self.gauges[name].most if name in self.gauges else None

    def last(self, name: str) -> int | None:
        """The last value of a gauge."""
        return self.gauges[name].last if name in self.gauges else None


def moments(series: Series) -> list[Moment]:
    """Every step of a range, also those in which nothing was."""
    count = max(0, -int((series.begin - series.end) // series.step))
    grid = [series.begin + n * series.step for n in range(count)]
    points = [series.points.get(at, _NOTHING) for at in grid]
    rates = _rates(points, series.step)
    if series.open and series.known is not None:
        under_way = int((series.known - series.begin) // series.step)
        if 0 <= under_way < count and (series.known - series.begin) % series.step < series.step / 2:
            rates[under_way] = None  # it has hardly begun
    return [
        Moment(
            at=at,
            running=_ran(point),
            records_in_per_second=rate[0] if rate else None,
            records_out_per_second=rate[1] if rate else None,
            busy=rate[2] if rate else None,
            gauges=point.gauges,
            latency=_latencies(point),
            marks=point.marks,
        )
        for at, point, rate in zip(grid, points, rates, strict=True)
    ]


def sinks_of(found: Sequence[Moment]) -> list[str]:
    """The sinks that have latencies, in the order in which they are first seen."""
    return list(dict.fromkeys(sink for moment in found for sink in moment.latency))


_NOTHING = Point()


def _ran(point: Point) -> bool:
    return point.up_ms > 0 or point.batches > 0


def _rates(points: Sequence[Point], step: int) -> list[tuple[float, float, float] | None]:
    """Records in and out a second, and the busy share, of each step.

    What a batch has done is spread over the steps since the batch before it, so that steps shorter
    than batches do not make a saw of it; but not over a time in which the job had nothing to do.
    """
    rates: list[tuple[float, float, float] | None] = [
        (0.0, 0.0, 0.0) if _ran(point) else None for point in points
    ]
    ends = [n for n, point in enumerate(points) if point.batches]
    if not ends:
        return rates
    usual = _usual(points, ends)
    before = -1
    for end in ends:
        first = end
        while first - 1 > before and _ran(points[first - 1]):
            first -= 1
        if end - first >= _IDLE * usual:
            first = end - usual + 1
        part = range(first, end + 1)
        seconds = max(sum(min(points[n].up_ms / 1000, step) for n in part), 1.0)
        done = points[end]
        took = done.gauges.get("duration_ms")
        busy = min(1.0, took.total / 1000 / seconds) if took else 0.0
        for n in part:
            rates[n] = (done.records_in / seconds, done.records_out / seconds, busy)
        before = end
    # the batch that is under way has not been counted yet
    for n in range(before + 1, min(before + _IDLE * usual, len(points))):
        rates[n] = None
    return rates


def _usual(points: Sequence[Point], ends: Sequence[int]) -> int:
    """How many steps there are from one batch to the next, usually."""
    apart = [
        other - one
        for one, other in pairwise(ends)
        if all(_ran(points[n]) for n in range(one, other))
    ]
    return median_low(apart) if apart else 1


def _latencies(point: Point) -> dict[str, Latency]:
    found: dict[Sinks, Latency] = {}
    for sinks, counts in point.latency.items():
        pairs = [(longest(at), count) for at, count in counts.items()]
        p50, p99 = quantile(pairs, 0.5), quantile(pairs, 0.99)
        if p50 is not None and p99 is not None:
            found[sinks] = Latency(p50, p99)
    return {sink: latency for sinks, latency in found.items() for sink in sinks}
