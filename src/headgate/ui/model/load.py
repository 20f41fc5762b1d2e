"""How busy a job and its steps are, with Flink's words for it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from headgate.ui.model.history import CheckpointRow

_LAST = 10
_LEVELS = ((0.10, "OK"), (0.50, "LOW"))
_SKEWED = ((0.25, "OK"), (0.75, "LOW"))


def busy_share(rows: Sequence[CheckpointRow]) -> float | None:
    """The share of the time in which a batch ran, over the last ones; None if unknown.

    >>> busy_share([])
    """
    timed = [row for row in rows[-_LAST:] if row.duration and row.triggered_at and row.completed_at]
    if len(timed) < 2:
        return None
    first, last = timed[0].triggered_at, timed[-1].completed_at
    assert first is not None and last is not None
    worked = sum((row.duration for row in timed if row.duration), timedelta(0))
    span = last - first
    return min(1.0, worked / span) if span > timedelta(0) else None


def level(share: float) -> str:
    """Flink's word for a share of busy time.

    >>> level(0.1), level(0.5), level(0.51)
    ('OK', 'LOW', 'HIGH')
    """
    return next((word for most, word in _LEVELS if share <= most), "HIGH")


def skew_level(variation: float) -> str:
    """The word for a coefficient of variation.

    >>> skew_level(0.1), skew_level(0.5), skew_level(1.4)
    ('OK', 'LOW', 'HIGH')
    """
    return next((word for most, word in _SKEWED if variation <= most), "HIGH")
