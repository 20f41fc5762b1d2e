"""Durations: timedelta inside, "5 seconds" accepted at the edge."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TypeAlias

from headgate.base.errors import UsageError

Duration: TypeAlias = timedelta | str
"""A timedelta, or text such as "1 hour 30 minutes".

>>> hg.tumbling("1 hour 30 minutes") == hg.tumbling(timedelta(minutes=90))
True
"""

_UNITS = {
    "ms": 0.001, "millisecond": 0.001, "s": 1, "sec": 1, "second": 1, "m": 60, "min": 60,
    "minute": 60, "h": 3600, "hour": 3600, "d": 86400, "day": 86400, "week": 604800,
}  # fmt: skip
LONGEST = timedelta(days=36_500)
"""Longer ones are a slip of the pen; sums of times with them would not be times any more."""
_PART = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")


def parse_duration(value: Duration, *, what: str = "duration") -> timedelta:
    """Read a duration as people write it.

    >>> parse_duration("1 hour 30 minutes")
    datetime.timedelta(seconds=5400)
    >>> parse_duration("200 milliseconds")
    datetime.timedelta(microseconds=200000)
    """
    if isinstance(value, timedelta):
        if value < timedelta(0):
            raise UsageError(
                f"{what} must not be negative", got=str(value), remedy="use zero or more"
            )
        return _reasonable(value.total_seconds(), value, what)
    text = value.strip().lower() if isinstance(value, str) else ""
    seconds, position = 0.0, 0
    while match := _PART.match(text, position):
        number, unit = match.groups()
        factor = _UNITS.get(unit, _UNITS.get(unit.removesuffix("s")))
        if factor is None:
            break
        seconds += float(number) * factor
        position = match.end()
    if position == 0 or position != len(text):
        raise UsageError(
            f'{what} must be a timedelta or text such as "5 seconds"',
            got=repr(value),
            remedy="write a number and a unit: milliseconds, seconds, minutes, hours or days",
        )
    return _reasonable(seconds, value, what)


def parse_signed(value: Duration, *, what: str = "duration") -> timedelta:
    """Read a duration that may be negative.

    >>> parse_signed("-10 minutes"), parse_signed("1 hour")
    (datetime.timedelta(days=-1, seconds=85800), datetime.timedelta(seconds=3600))
    """
    if isinstance(value, timedelta):
        size = parse_duration(abs(value), what=what)
        return -size if value < timedelta(0) else size
    if isinstance(value, str) and value.strip().startswith("-"):
        return -parse_duration(value.strip()[1:], what=what)
    return parse_duration(value, what=what)


def _reasonable(seconds: float, value: Duration, what: str) -> timedelta:
    if seconds > LONGEST.total_seconds():
        raise UsageError(
            f"{what} must be at most 100 years ({LONGEST.days:,} days)",
            got=str(value),
            remedy="use a shorter duration",
        )
    return value if isinstance(value, timedelta) else timedelta(seconds=seconds)


def format_duration(value: timedelta) -> str:
    """Show a duration shortly.

    >>> format_duration(timedelta(seconds=75))
    '1m 15s'
    """
    seconds = value.total_seconds()
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    if seconds < 60:
        return f"{seconds:.1f}s"
    whole = int(seconds)
    days, rest = divmod(whole, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    if days:
        return f"{days}d {hours:02d}h"
    if hours:
        return f"{hours}h {minutes:02d}m"
    return f"{minutes}m {left:02d}s"


def spell_duration(value: timedelta) -> str:
    """Show a duration exactly, in the largest unit that has no fraction.

    >>> spell_duration(timedelta(days=7)), spell_duration(timedelta(minutes=90))
    ('7 days', '90 minutes')
    >>> spell_duration(timedelta(minutes=-10))
    '-10 minutes'
    """
    if value < timedelta(0):
        return f"-{spell_duration(-value)}"
    millis = round(value.total_seconds() * 1000)
    units = {"day": 86_400_000, "hour": 3_600_000, "minute": 60_000, "second": 1000}
    for unit, size in units.items():
        if millis and millis % size == 0:
            return f"{millis // size} {unit}{'s' * (millis != size)}"
    return f"{millis} milliseconds"
