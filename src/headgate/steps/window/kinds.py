"""Kinds of windows, and the triggers that let a window speak before it ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from headgate.base.durations import Duration, parse_duration, parse_signed, spell_duration
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.analysis import expression_text

Clock: TypeAlias = Literal["event", "processing"]
_US = timedelta(microseconds=1)


class Window:
    """How rows are put into windows: by `tumbling`, `sliding`, `session` or `count_window`.

    >>> isinstance(hg.tumbling("15 minutes"), hg.Window)
    True
    """

    def config(self) -> dict[str, Any]:
        """What decides whether stored windows can still be used."""
        raise NotImplementedError

    @staticmethod
    def of(config: Mapping[str, Any]) -> Window:
        """The window of a config.

        >>> str(Window.of(tumbling("15 minutes").config()))
        'tumbling 15 minutes'
        """
        if config["type"] == "count":
            return CountWindow(config["size"], config["every"])
        size, every, offset = (
            timedelta(microseconds=config[f"{name}_us"]) for name in ("size", "every", "offset")
        )
        session, clock = config["type"] == "session", config.get("clock", "event")
        return TimeWindow(size, every, offset, session, clock)


@dataclass(frozen=True)
class CountWindow(Window):
    """Windows of so many rows; made by `count_window`."""

    size: int
    every: int

    def config(self) -> dict[str, Any]:
        return {"type": "count", "size": self.size, "every": self.every}

    def __str__(self) -> str:
        return f"{self.size} rows" + (f" every {self.every}" if self.every != self.size else "")


@dataclass(frozen=True)
class TimeWindow(Window):
    """Windows of event or processing time; made by `tumbling`, `sliding` or `session`."""

    size: timedelta
    """How long windows are; of sessions the gap that ends them."""
    every: timedelta
    offset: timedelta = timedelta(0)
    session: bool = False
    clock: Clock = "event"

    def config(self) -> dict[str, Any]:
        kind = "session" if self.session else "sliding" if self.every != self.size else "tumbling"
        return {
            "type": kind,
            "size_us": self.size // _US,
            "every_us": self.every // _US,
            "offset_us": self.offset // _US,
            # event time is not written down: configs from before there was another are the same
            **({"clock": self.clock} if self.clock != "event" else {}),
        }

    def __str__(self) -> str:
        size = spell_duration(self.size)
        shift = f" offset {spell_duration(self.offset)}" if self.offset else ""
        by = " of processing time" if self.clock == "processing" else ""
        if self.session:
            return f"session with a gap of {size}{by}"
        if self.every != self.size:
            return f"sliding {size} every {spell_duration(self.every)}{shift}{by}"
        return f"tumbling {size}{shift}{by}"


class Trigger:
    """What makes a window emit an early row; created by `every`, `after_count` or `when`.

    >>> isinstance(hg.every("2 minutes"), hg.Trigger)
    True
    """

    def config(self) -> dict[str, Any]:
        """The trigger as it is stored."""
        raise NotImplementedError


@dataclass(frozen=True)
class Every(Trigger):
    """Early rows whenever time has passed a multiple of an interval; made by `every`."""

    interval: timedelta
    clock: Clock = "event"

    def config(self) -> dict[str, Any]:
        return {"type": "every", "interval_us": self.interval // _US, "clock": self.clock}

    def __str__(self) -> str:
        return f"every {spell_duration(self.interval)} of {self.clock} time"


@dataclass(frozen=True)
class AfterCount(Trigger):
    """Early rows after so many rows; made by `after_count`."""

    count: int

    def config(self) -> dict[str, Any]:
        return {"type": "after_count", "count": self.count}

    def __str__(self) -> str:
        return f"after {self.count} rows"


@dataclass(frozen=True)
class When(Trigger):
    """Early rows when a condition on the aggregates is true; made by `when`."""

    condition: Expr
    once: bool = True

    def config(self) -> dict[str, Any]:
        return {"type": "when", "condition": expression_text(self.condition), "once": self.once}

    def __str__(self) -> str:
        return f"when {expression_text(self.condition)}{' once' if self.once else ''}"


def _positive(value: Duration, what: str) -> timedelta:
    """A duration of at least a millisecond, which is how exact watermarks are."""
    duration = parse_duration(value, what=what)
    if duration < timedelta(milliseconds=1) or duration.microseconds % 1000:
        raise GraphError(
            f"{what} must be a whole number of milliseconds greater than zero",
            got=repr(value),
            remedy='give a duration such as "5 minutes"',
            location=user_location(),
        )
    return duration


def _offset(value: Duration, below: timedelta, what: str) -> timedelta:
    """How much later windows begin; or earlier, if it is negative."""
    shift = parse_signed(value, what="the window's offset")
    if shift:
        _positive(abs(shift), "the window's offset")
    if abs(shift) >= below:
        raise GraphError(
            f"the window's offset must be less than {what}, {spell_duration(below)}",
            got=spell_duration(shift),
            remedy=f"use the remainder of its division by {what}",
            location=user_location(),
        )
    return shift


def _clock(clock: Clock, what: str, call: str) -> Clock:
    if clock not in ("event", "processing"):
        raise GraphError(
            f"the clock of {what} must be 'event' or 'processing'",
            got=repr(clock),
            remedy=f"write {call}(...) for event time, or {call}(..., clock='processing')",
            location=user_location(),
        )
    return clock


def tumbling(size: Duration, *, offset: Duration = "0 seconds", clock: Clock = "event") -> Window:
    """Windows that follow each other; an offset makes them begin that much later or earlier.

    With `clock="processing"`, a row is in the window of the time at which its batch began.

    >>> str(tumbling("15 minutes")), str(tumbling("1 day", offset="-6 hours"))
    ('tumbling 15 minutes', 'tumbling 1 day offset -6 hours')
    >>> str(tumbling("10 seconds", clock="processing"))
    'tumbling 10 seconds of processing time'
    """
    length = _positive(size, "the window's size")
    shift = _offset(offset, length, "its size")
    return TimeWindow(length, length, shift, clock=_clock(clock, "a window", "tumbling"))


def sliding(
    size: Duration, *, every: Duration, offset: Duration = "0 seconds", clock: Clock = "event"
) -> Window:
    """Windows that overlap: one begins after each interval, and a row is in several of them.

    >>> str(sliding("10 minutes", every="1 minute"))
    'sliding 10 minutes every 1 minute'
    >>> str(sliding("1 hour", every="20 minutes", offset="5 minutes"))
    'sliding 1 hour every 20 minutes offset 5 minutes'
    """
    length = _positive(size, "the window's size")
    step = _positive(every, "the window's every")
    if step > length:
        raise GraphError(
            f"every must be at most the size of the windows, {spell_duration(length)}, or rows "
            "would be left out",
            got=spell_duration(step),
            remedy="make the windows longer, or every shorter",
            location=user_location(),
        )
    shift = _offset(offset, step, "its every")
    return TimeWindow(length, step, shift, clock=_clock(clock, "a window", "sliding"))


def session(gap: Duration, *, clock: Clock = "event") -> Window:
    """Windows of rows that are at most a gap apart: a session ends after a gap without rows.

    >>> str(session("30 minutes"))
    'session with a gap of 30 minutes'
    """
    length = _positive(gap, "the gap of a session")
    by = _clock(clock, "a session", "session")
    return TimeWindow(length, length, session=True, clock=by)


def count_window(size: int, *, every: int | None = None) -> Window:
    """Windows of `size` rows of a key; with `every`, the last `size` rows after each `every` rows.

    >>> str(count_window(4)), str(count_window(4, every=2))
    ('4 rows', '4 rows every 2')
    """
    step = size if every is None else every
    for number, what in ((size, "size"), (step, "every")):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise GraphError(
                f"the {what} of a count window must be a number of rows greater than zero",
                got=repr(number),
                remedy="give one, for instance count_window(10)",
                location=user_location(),
            )
    if step > size:
        raise GraphError(
            f"every must be at most the size of the count windows, {size}, or rows would be left "
            "out",
            got=str(step),
            remedy="make the windows longer, or every smaller",
            location=user_location(),
        )
    return CountWindow(size, step)


def every(interval: Duration, *, clock: Clock = "event") -> Trigger:
    """Emit an early row when time passes a multiple of the interval, if the window has changed.

    Event time means the job's watermark, processing time the time of the batch.

    >>> str(every("2 minutes")), str(every("10 seconds", clock="processing"))
    ('every 2 minutes of event time', 'every 10 seconds of processing time')
    """
    by = _clock(clock, "every", "every")
    return Every(_positive(interval, "the interval of every"), by)


def after_count(count: int) -> Trigger:
    """Emit an early row after this many rows of a key and window since its last row.

    >>> str(after_count(4))
    'after 4 rows'
    """
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise GraphError(
            "after_count must be a number of rows greater than zero",
            got=repr(count),
            remedy="give one, for instance after_count(10)",
            location=user_location(),
        )
    return AfterCount(count)


def when(condition: Expr, *, once: bool = True) -> Trigger:
    """Emit an early row when the aggregates meet a condition: once per window, or each time.

    >>> str(when("visits >= 10"))
    'when visits >= 10 once'
    """
    return When(condition, once)
