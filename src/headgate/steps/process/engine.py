"""Runs a process function's handlers for one key after the other; knows neither Arrow nor Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pyspark.sql import Row

from headgate.base.counters import OWN_COUNTS
from headgate.steps.process.change import Change, ListChange, Loaded, MapChange
from headgate.steps.process.codecs import TypeMistake
from headgate.steps.process.declare import Tagged
from headgate.steps.process.failure import FAILURES, HandlerError, error_row
from headgate.steps.process.function import Context, Process
from headgate.steps.process.live import (
    LiveList,
    LiveMap,
    LiveTimer,
    LiveValue,
    Together,
    live_state,
    time_of,
)
from headgate.steps.process.records import BadRow
from headgate.steps.process.returned import many_only
from headgate.steps.process.shape import Shape
from headgate.steps.process.yielded import Yielded

OnError = Literal["fail", "side"]
NEVER = -(2**63)
ENDED = 2**63 - 1
"""The watermark when event time has ended."""


class Now(Context):
    """The context of the row or timer that is at work."""

    def __init__(self) -> None:
        self.micros: int | None = None
        self.row_key: Callable[[], Row] = Row
        self.event = NEVER
        self.clock = 0
        self.counted: Counter[str] = Counter()

    @property
    def key(self) -> Row:
        return self.row_key()

    @property
    def timestamp(self) -> datetime | None:
        return None if self.micros is None else time_of(self.micros)

    @property
    def watermark(self) -> datetime:
        return time_of(self.event)

    @property
    def processing_time(self) -> datetime:
        return time_of(self.clock)

    def count(self, metric: str, by: int = 1) -> None:
        if not isinstance(metric, str) or not isinstance(by, int):
            raise TypeMistake("a count", "a name and a whole number", (metric, by))
        if metric.startswith(OWN_COUNTS):
            raise ValueError(f"'{metric}' is a name of Headgate's own counters")
        self.counted[metric] += by


@dataclass
class Outputs:
    """What handlers yielded: rows and, beside each, the time of the row it came from."""

    main: list[tuple[Any, ...]] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)
    sides: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)
    side_times: dict[str, list[int | None]] = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    error_times: list[int | None] = field(default_factory=list)


class Engine:
    """The handlers of one process function and the states of the key that is at work."""

    def __init__(
        self, function: Process, shape: Shape, *, step: str = "", on_error: OnError = "fail"
    ) -> None:
        self.function, self.shape, self.step, self.on_error = function, shape, step, on_error
        self.context = Now()
        made = {s.name: live_state(s) for s in shape.states}
        self.timers = [LiveTimer(t) for t in shape.timers]
        for name, state in made.items():
            function.__dict__[name] = state
        for timer in self.timers:
            function.__dict__[timer._declared.name] = timer
        self.values = [s for s in made.values() if isinstance(s, LiveValue)]
        self.lists = [s for s in made.values() if isinstance(s, LiveList)]
        self.maps = [s for s in made.values() if isinstance(s, LiveMap)]
        self._states: list[LiveValue | LiveList | LiveMap] = [
            *self.values,
            *self.lists,
            *self.maps,
        ]
        self._ttls = [_micros(s._declared.ttl) for s in self._states]
        self._ending = [n for n, s in enumerate(self.values) if s._declared.ttl is not None]
        self._nexts: Sequence[int] = [0] * len(self.lists)
        self._ends: list[int | None] = []
        self._times: Sequence[int | None] = ()
        self._sweep: int | None = None
        self._dirty = False
        self._expires = shape.expires
        # values alone: a worker loads and writes them without the detours that others need
        self.plain = not (self.lists or self.maps or self.timers or self._expires)
        self.together = Together(self.values)
        self.handlers = [many_only(getattr(function, h.method)) for h in shape.inputs]
        self._on_timers = [many_only(getattr(function, f"on_{t.name}")) for t in shape.timers]
        self.output = Yielded(shape.output) if shape.output else None
        self.take = self.output.take if self.output else _no
        self.sides = {s.name: Yielded(s.value) for s in shape.sides}
        self.outputs = Outputs()
        self.begin(NEVER, 0)

    def begin(self, event: int, clock: int) -> None:
        """Start a batch with its watermark and its time."""
        self.context.event, self.context.clock = event, clock
        limits = [event if t._declared.clock == "event" else clock for t in self.timers]
        # event time ends behind the rows of a batch, and with it every timer that they set is due
        self._limits = [NEVER if limit == ENDED else limit for limit in limits]
        self._last = [limit if limit == ENDED else NEVER for limit in limits]
        self._ends_time = ENDED in limits
        self.take_outputs()

    def take_outputs(self) -> Outputs:
        """What was yielded since the last call."""
        taken = self.outputs
        self.outputs = Outputs(
            sides={s: [] for s in self.sides}, side_times={s: [] for s in self.sides}
        )
        return taken

    def load(self, key: Callable[[], Row], state: Loaded | None) -> None:
        """Take a key up, and fire those of its timers that are due."""
        self.context.row_key = key
        self._dirty = False
        if state is None:
            self._load_nothing()
            return
        clock = self.context.clock
        values = state.values
        if self._ending:
            values, ends = list(values), list(state.ends)
            for number, which in enumerate(self._ending):
                end = ends[number]
                if end is not None and end <= clock:
                    values[which] = ends[number] = None
                    self._dirty = True
            self._ends = ends
        for live, value in zip(self.values, values, strict=True):
            live.load(value)
        for there, loaded in zip(self.lists, state.lists, strict=True):
            there.load(loaded)
        for found, entries in zip(self.maps, state.maps, strict=True):
            found.load(entries)
        self._nexts = state.nexts
        if state.entries and self._sizes() != list(state.entries):
            self._dirty = True
        self._times = state.times
        due = False
        for timer, at, limit in zip(self.timers, state.times, self._limits, strict=False):
            timer._at = at
            if at is not None and at <= limit:
                due = True
        self._sweep = state.times[-1] if self._expires else None
        if due:
            self._fire(self._limits)

    def _sizes(self) -> list[int]:
        return [there.held() for there in self.lists] + [found.held() for found in self.maps]

    def _load_nothing(self) -> None:
        for value in self.values:
            value.load(None)
        for there in self.lists:
            there.load([])
        for found in self.maps:
            found.load({})
        for timer in self.timers:
            timer._at = None
        self._nexts = [0] * len(self.lists)
        self._ends = [None] * len(self._ending)
        self._times = [None] * (len(self.timers) + self._expires)
        self._sweep = None

    def _fire(self, limits: Sequence[int]) -> None:
        """Call the handlers of timers that are due, in order of time.

        One that a handler sets is called now if it is due and later than the timer that set it;
        else with the next batch, so that this ends. When event time itself ends every timer is due,
        and one that sets itself again and again would never end: it is left.
        """
        after: dict[LiveTimer, int] = {}
        while True:
            due = [
                (timer._at, number, timer)
                for number, timer in enumerate(self.timers)
                if timer._at is not None
                and timer._at <= limits[number]
                and timer._at > after.get(timer, NEVER)
            ]
            if not due:
                return
            at, number, timer = min(due, key=lambda d: d[:2])
            timer.cancel()
            self.context.micros = at
            before = {t: t._at for t in self.timers}
            self.call(timer._declared.name, self._on_timers[number], None)
            for other in self.timers:
                if other._at is not None and other._at != before[other]:
                    ended = limits[self.timers.index(other)] == ENDED
                    after[other] = ENDED if ended else at

    def row(self, number: int, row: Any, micros: int | None) -> None:
        """Give a row of an input to its handler."""
        self.context.micros = micros
        self.call(self.shape.inputs[number].name, self.handlers[number], row)

    def call(self, name: str, handler: Callable[..., Any], row: Any) -> None:
        """Call a handler; an error of it fails the batch, or goes aside as if it never ran."""
        arguments = (self.context,) if row is None else (row, self.context)
        given: Any = None
        if self.on_error == "fail":
            try:
                given = handler(*arguments)
                self.deliver(name, given)
            except FAILURES as error:
                raise self.failed(name, row, error, given) from error
            return
        marks = [state.mark() for state in self._states]
        times = [timer._at for timer in self.timers]
        counted = self.context.counted.copy()
        kept = self.take_outputs()
        try:
            given = handler(*arguments)
            self.deliver(name, given)
        except FAILURES as error:
            for state, mark in zip(self._states, marks, strict=True):
                state.back(mark)
            for timer, at in zip(self.timers, times, strict=True):
                timer._at = at
            self.context.counted = counted
            kept.errors.append(error_row(name, self.context.key, row, error, given))
            kept.error_times.append(self.context.micros)
        else:
            kept.main += self.outputs.main
            kept.times += self.outputs.times
            for side in kept.sides:
                kept.sides[side] += self.outputs.sides[side]
                kept.side_times[side] += self.outputs.side_times[side]
        self.outputs = kept

    def bad_row(self, name: str, bad: BadRow, micros: int | None) -> None:
        """Take note of a row that cannot be given to its handler."""
        if self.on_error == "fail":
            raise self.failed(name, bad.row, bad.error) from bad.error
        self.outputs.errors.append(error_row(name, self.context.key, bad.row, bad.error))
        self.outputs.error_times.append(micros)

    def failed(self, name: str, row: Any, error: BaseException, given: Any = None) -> HandlerError:
        """The error of a handler with all that helps to find it, and what it gave till then."""
        return HandlerError(self.step, f"on_{name}", self.context.key, row, error, given=given)

    def deliver(self, name: str, result: Any) -> None:
        """Take what a handler gave."""
        if result is None:
            return
        out, take, micros = self.outputs, self.take, self.context.micros
        for value in result:
            row = take(value)
            if row is None:
                if value.__class__ is Tagged:
                    self.side(name, value, out)
                    continue
                row = self._row(name, self.output, value, "")
            out.main.append(row)
            out.times.append(micros)

    def side(self, name: str, tagged: Tagged[Any], out: Outputs) -> None:
        """Take a value for a side output."""
        side = tagged.output
        if side not in self.sides:
            raise TypeMistake(
                f"what on_{name} yields", "for a side output of this function", tagged
            )
        yielded, value = self.sides[side], tagged.value
        row = yielded.take(value)
        if row is None:
            row = self._row(name, yielded, value, f" for '{side}'")
        out.sides[side].append(row)
        out.side_times[side].append(self.context.micros)

    def _row(self, name: str, yielded: Yielded | None, value: Any, where: str) -> tuple[Any, ...]:
        what = f"what on_{name} yields{where}"
        if yielded is None:
            raise TypeMistake(what, "for a side output: no handler says that it gives rows", value)
        if value is None:
            raise TypeMistake(what, yielded.codec.name, value)
        return yielded.row(yielded.codec.normal(value, what))

    def finish(self) -> Change | None:
        """End the work on a key: what is to be written, or None if nothing changed."""
        if self._ends_time:
            self._fire(self._last)
        clock = self.context.clock
        times: list[int | None] = [timer._at for timer in self.timers]
        if self._expires:
            times.append(self._next_sweep())
        if not self._dirty and times == list(self._times):
            for state in self._states:
                if state._changed:
                    break
            else:
                return None
        ends: list[int | None] = []
        for number, at in enumerate(self._ending):
            value = self.values[at]
            ttl = self._ttls[at]
            assert ttl is not None
            ends.append(clock + ttl if value._changed else self._ends[number])
            if value._value is None:
                ends[-1] = None
        entries: list[int] = []
        lists: list[ListChange | None] = []
        for number, there in enumerate(self.lists):
            first = 0 if there._cleared else self._nexts[number]
            entries += [there.held(), first + len(there._new)]
            lists.append(ListChange(there._cleared, first, there._new) if there._changed else None)
        maps: list[MapChange | None] = []
        for found in self.maps:
            entries.append(found.held())
            put = {k: found._data[k] for k in found._put}
            maps.append(
                MapChange(found._cleared, put, list(found._gone)) if found._changed else None
            )
        values = [value._value for value in self.values]
        empty = (
            all(v is None for v in values)
            and not any(self._sizes())
            and all(t is None for t in times)
        )
        return Change(empty, values, ends, entries, times, self._times, lists, maps)

    def _next_sweep(self) -> int | None:
        """When the key is to be looked at for what is over; it may be a little late."""
        waits = [
            ttl
            for state, ttl in zip(self._states, self._ttls, strict=True)
            if ttl is not None
            and (state._value is not None if isinstance(state, LiveValue) else state.held())
        ]
        if not waits:
            return None
        soon = self.context.clock + min(waits)
        # a sweep that is planned stays, so that a key is not written for it in each batch
        planned = self._sweep is not None and self.context.clock < self._sweep <= soon
        return self._sweep if planned else soon


def _no(value: Any) -> None:
    return None


def _micros(ttl: Any) -> int | None:
    return None if ttl is None else round(ttl.total_seconds() * 1_000_000)
