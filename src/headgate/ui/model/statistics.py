"""Minimum, average, maximum and percentiles of a column of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headgate.ui.model.view import View


@dataclass(frozen=True)
class Statistics(View):
    """A column in short, with Flink's names; all null where there is no number."""

    min: float | None
    max: float | None
    avg: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p999: float | None


def statistics(values: Iterable[float]) -> Statistics:
    """The statistics of numbers; a percentile is a number that is there (nearest rank).

    >>> s = statistics(range(1, 101))
    >>> s.min, s.avg, s.p50, s.p99, s.p999
    (1, 50.5, 50, 99, 100)
    >>> statistics([]).avg
    """
    column = sorted(values)
    if not column:
        return Statistics(*[None] * 8)

    def rank(share: float) -> float:
        # multiplied out first: 0.9 * 10 is a little more than 9
        return column[max(0, math.ceil(round(share * len(column), 9)) - 1)]

    return Statistics(
        column[0],
        column[-1],
        sum(column) / len(column),
        *(rank(share) for share in (0.5, 0.9, 0.95, 0.99, 0.999)),
    )
