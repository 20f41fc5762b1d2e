"""Event time of a source: which time counts, how late rows may be, how long to wait for it."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import UsageError
from headgate.connectors.base import Expr


@dataclass(frozen=True)
class EventTime:
    """A source's event time: the column, how far out of order, how long to wait in silence.

    >>> hg.event_time("placed", idle_after="1 minute")
    EventTime(column='placed', out_of_orderness='0 seconds', idle_after='1 minute')
    """

    column: Expr
    out_of_orderness: Duration = "0 seconds"
    idle_after: Duration | None = None


def event_time(
    column: Expr, *, out_of_orderness: Duration = "0 seconds", idle_after: Duration | None = None
) -> EventTime:
    """Event time from a column or expression.

    A source's watermark is the newest time of its rows minus `out_of_orderness`. The job's
    watermark is the lowest of these. A source without rows for `idle_after` is left out until its
    next row.

    >>> event_time("created_at", out_of_orderness="5 seconds").out_of_orderness
    '5 seconds'
    """
    parse_duration(out_of_orderness, what="out_of_orderness")
    if idle_after is not None and not parse_duration(idle_after, what="idle_after"):
        raise UsageError(
            "idle_after must be greater than zero",
            got=repr(idle_after),
            remedy="leave it out if the source is always to be waited for",
        )
    return EventTime(column, out_of_orderness, idle_after)
