"""ProcessDriver: a process function in a test, in plain Python, without Spark."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from pyspark.sql import Row

from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import NotFoundError, UsageError
from headgate.steps.process.arrow import ArrowProcess
from headgate.steps.process.change import Change, Loaded
from headgate.steps.process.codecs import TypeMistake
from headgate.steps.process.engine import ENDED, NEVER, Engine, OnError
from headgate.steps.process.failure import HandlerError
from headgate.steps.process.function import Process
from headgate.steps.process.live import micros_of, time_of
from headgate.steps.process.records import BadRow, started
from headgate.steps.process.shape import Handler, Shape, shape_of
from headgate.steps.process.stored import KeyState, round_trip
from headgate.testing.keys import key_row
from headgate.testing.tasks import Tasks

Record: TypeAlias = Mapping[str, Any] | object
When: TypeAlias = datetime | str


@dataclass
class _Call:
    """A row on its way to its handler."""

    number: int
    row: Any
    micros: int | None


@dataclass
class _Memory:
    """The states of all keys, and the keys as they were given."""

    states: dict[tuple[Any, ...], KeyState] = field(default_factory=dict)
    rows: dict[tuple[Any, ...], Row] = field(default_factory=dict)


class ProcessDriver:
    """Passes rows to a process function and moves time forward; each call is a batch.

    As in a job, a batch first fires the timers that are due, then calls the handlers of its rows. A
    timer that a row sets in the past fires with the next batch.

    >>> class Settle(hg.Process):
    ...     owed = hg.value_state(float)
    ...     deadline = hg.timer("event")
    ...     unpaid = hg.side_output(str)
    ...
    ...     def on_orders(self, order: Row, ctx: hg.Context) -> None:
    ...         self.owed.set(order.price)
    ...         self.deadline.set(ctx.timestamp + timedelta(minutes=30))
    ...
    ...     def on_payments(self, payment: Row, ctx: hg.Context) -> hg.Out[str]:
    ...         if payment.amount < self.owed.get():
    ...             raise ValueError("not enough")
    ...         ctx.count("paid")
    ...         self.owed.clear()
    ...         self.deadline.cancel()
    ...         yield f"{ctx.key[0]} is paid"
    ...
    ...     def on_deadline(self, ctx: hg.Context) -> hg.Out[str]:
    ...         yield self.unpaid(ctx.key[0])
    >>> driver = ProcessDriver(Settle(), on_error="side")
    >>> driver.send("orders", {"price": 10.0}, key="o1", at="2026-01-01T12:00:00")
    []
    >>> driver.state("owed", key="o1")
    10.0

    The examples below continue from here.
    """

    def __init__(
        self,
        function: Process,
        *,
        inputs: Sequence[str] | None = None,
        on_error: OnError = "fail",
        processing_time: When = "2026-01-01T00:00:00",
    ) -> None:
        if isinstance(function, ArrowProcess):
            raise UsageError(
                f"{type(function).__name__} is a function of batches, which come from the kernel",
                remedy="try it in a job with JobDriver",
            )
        self._given = function
        self._on_error = on_error
        self._inputs = inputs
        self.shape: Shape = shape_of(function, inputs)
        self._tasks = Tasks(function)
        self._engine = Engine(self._tasks.function, self.shape, on_error=on_error)
        self._tasks.keep()
        self._memory = _Memory()
        self._event = NEVER
        self._clock = micros_of(_time(processing_time))
        self._sides: dict[str, list[Any]] = {s.name: [] for s in self.shape.sides}
        self._errors: list[dict[str, Any]] = []

    def send(self, input: str, record: Record, *, key: Any, at: When | None = None) -> list[Any]:
        """Pass a row to the handler of an input; returns the rows of the main output.

        A key of several parts is a tuple, or a dict or Row that names them.

        >>> driver.send("payments", {"amount": 10.0}, key="o1")
        ['o1 is paid']
        """
        return self._batch({self._key(key): [self._call(input, record, at)]})

    def send_batch(self, rows: Iterable[tuple[str, Record, Any, When | None]]) -> list[Any]:
        """Pass several rows in one batch: each has an input, a record, a key and a time or None.

        As in a job, the rows of a key come input by input: in the order of the driver's `inputs`,
        by default that of the class's handlers. A job uses the order in `job.process`.

        >>> noon = datetime(2026, 1, 1, 12)
        >>> driver.send_batch([("payments", {"amount": 5.0}, "o2", None),
        ...                    ("orders", {"price": 5.0}, "o2", noon),
        ...                    ("orders", {"price": 7.0}, "o3", noon)])
        ['o2 is paid']
        """
        calls: dict[tuple[Any, ...], list[_Call]] = {}
        for input, record, key, at in rows:
            calls.setdefault(self._key(key), []).append(self._call(input, record, at))
        for of_key in calls.values():
            of_key.sort(key=lambda call: call.number)
        return self._batch(calls)

    def _call(self, input: str, record: Record, at: When | None) -> _Call:
        names = [handler.name for handler in self.shape.inputs]
        if input not in names:
            raise NotFoundError(
                f"{self.shape.name} has no input '{input}'",
                expected=", ".join(names),
                remedy="send to one of them",
            )
        number = names.index(input)
        row = _row(self.shape.inputs[number], record)
        return _Call(number, row, None if at is None else micros_of(_time(at)))

    def advance_watermark(self, to: When) -> list[Any]:
        """Move event time forward; returns what the timers that are due emit.

        `datetime.max` ends it, as `--drain` does.

        >>> driver.advance_watermark("2026-01-01T12:30:00")
        []
        >>> driver.side("unpaid")
        ['o3']
        """
        time = _time(to)
        ends = time.replace(tzinfo=None) == datetime.max
        self._event = max(self._event, ENDED if ends else micros_of(time))
        return self._batch({})

    def advance_processing_time(self, by: Duration) -> list[Any]:
        """Move processing time forward; returns what the timers that are due emit.

        >>> driver.advance_processing_time("5 minutes")
        []
        """
        self._clock += round(parse_duration(by).total_seconds() * 1_000_000)
        return self._batch({})

    def side(self, output: str) -> list[Any]:
        """The rows of a side output since the last call.

        >>> driver.side("unpaid")
        []
        """
        if output not in self._sides:
            raise NotFoundError(
                f"{self.shape.name} has no side output '{output}'",
                expected=", ".join(self._sides) or "none is declared",
                remedy="name one of them",
            )
        found, self._sides[output] = self._sides[output], []
        return found

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The rows whose handler failed, with `on_error="side"`, since the last call.

        >>> driver.send("payments", {"amount": 1.0}, key="o3")
        []
        >>> [(failed["handler"], failed["error"]) for failed in driver.errors]
        [('on_payments', 'ValueError: not enough')]
        """
        found, self._errors = self._errors, []
        return found

    def state(self, name: str, *, key: Any) -> Any:
        """The state of a key: a value or None, a list, or a dict.

        >>> driver.state("owed", key="o3"), driver.state("owed", key="o1")
        (7.0, None)
        """
        for kind in ("value", "list", "map"):
            states = self.shape.of_kind(kind)
            if name in [s.name for s in states]:
                number = [s.name for s in states].index(name)
                codec = states[number].value
                there = self._memory.states.get(self._key(key))
                if kind == "value":
                    return None if there is None else codec.copy(there.value(number, self._clock))
                if kind == "list":
                    kept = [] if there is None else there.list_of(number, self._clock)
                    return [codec.copy(v) for v in kept]
                entries = {} if there is None else there.map_of(number, self._clock)
                return {k: codec.copy(entries[k]) for k in sorted(entries)}
        raise NotFoundError(
            f"{self.shape.name} has no state '{name}'",
            expected=", ".join(s.name for s in self.shape.states) or "none is declared",
            remedy="name one of them",
        )

    def timers(self, *, key: Any) -> dict[str, datetime]:
        """The timers of a key that are set.

        >>> driver.send("orders", {"price": 3.0}, key="o4", at="2026-01-01T13:00:00")
        []
        >>> driver.timers(key="o4")["deadline"].isoformat()
        '2026-01-01T13:30:00'
        """
        there = self._memory.states.get(self._key(key))
        if there is None:
            return {}
        pairs = zip(self.shape.timers, there.times, strict=False)
        return {timer.name: time_of(at) for timer, at in pairs if at is not None}

    @property
    def counts(self) -> dict[str, int]:
        """The counters that handlers added to.

        >>> driver.counts
        {'paid': 2}
        """
        return dict(self._engine.context.counted)

    def restored(self) -> ProcessDriver:
        """A driver that continues from here, with state that went through the real encoders.

        >>> driver.restored().state("owed", key="o4")
        3.0
        """
        driver = ProcessDriver(self._given, inputs=self._inputs, on_error=self._on_error)
        states = round_trip(self.shape, list(self._memory.states.values()))
        driver._memory = _Memory(
            dict(zip(self._memory.states, states, strict=True)), dict(self._memory.rows)
        )
        driver._event, driver._clock = self._event, self._clock
        return driver

    def _key(self, key: Any) -> tuple[Any, ...]:
        row = key_row(key)
        parts = tuple(row)
        self._memory.rows.setdefault(parts, row)
        return parts

    def _batch(self, calls: dict[tuple[Any, ...], list[_Call]]) -> list[Any]:
        engine = self._engine
        engine.begin(self._event, self._clock)
        due = [k for k, s in self._memory.states.items() if k not in calls and self._due(s)]
        changes: dict[tuple[Any, ...], Change | None] = {}
        counted = engine.context.counted.copy()
        keys = [*calls, *sorted(due, key=lambda k: self._first(k))]
        try:
            if keys:
                with self._tasks.task():
                    changes = {key: self._of_key(key, calls.get(key, ())) for key in keys}
        except Exception as error:
            # nothing of a batch that failed is kept
            engine.take_outputs()
            engine.context.counted = counted
            if not isinstance(error, HandlerError):
                raise
            error.error.add_note(str(error))
            raise error.error from None
        for key, change in changes.items():
            if change is not None:
                before = self._memory.states.get(key) or KeyState.empty(self.shape)
                if change.empty:
                    self._memory.states.pop(key, None)
                else:
                    self._memory.states[key] = before.changed(self.shape, change, self._clock)
        outputs = engine.take_outputs()
        for name, rows in outputs.sides.items():
            self._sides[name] += engine.sides[name].values(rows)
        self._errors += outputs.errors
        return engine.output.values(outputs.main) if engine.output else []

    def _of_key(self, key: tuple[Any, ...], calls: Sequence[_Call]) -> Change | None:
        engine, row = self._engine, self._memory.rows[key]
        engine.load(lambda: row, self._load(self._memory.states.get(key)))
        for call in calls:
            if isinstance(call.row, BadRow):
                engine.bad_row(self.shape.inputs[call.number].name, call.row, call.micros)
            else:
                engine.row(call.number, call.row, call.micros)
        return engine.finish()

    def _clocks(self) -> list[tuple[int, int]]:
        """How far the clock of each time is, and which clock's keys come first."""
        limits = [
            (self._event, 0) if timer.clock == "event" else (self._clock, 1)
            for timer in self.shape.timers
        ]
        return [*limits, (self._clock, 2)] if self.shape.expires else limits

    def _first(self, key: tuple[Any, ...]) -> tuple[int, int]:
        times = zip(self._memory.states[key].times, self._clocks(), strict=True)
        return min((rank, at) for at, (limit, rank) in times if at is not None and at <= limit)

    def _due(self, state: KeyState) -> bool:
        times = zip(state.times, self._clocks(), strict=True)
        return any(at is not None and at <= limit for at, (limit, _) in times)

    def _load(self, state: KeyState | None) -> Loaded | None:
        return None if state is None else state.loaded(self._clock)


def _time(at: When) -> datetime:
    try:
        return datetime.fromisoformat(at) if isinstance(at, str) else at
    except ValueError:
        raise UsageError(
            "the time must be a datetime or ISO text",
            got=repr(at),
            remedy='write it like "2026-01-01T12:00:00"',
        ) from None


def _row(handler: Handler, record: Record) -> Any:
    """A record as the handler's rows are."""
    if isinstance(record, Row):
        record = record.asDict()
    if dataclasses.is_dataclass(record) and not isinstance(record, type):
        if handler.row is not None and isinstance(record, handler.row.kind):
            return _checked(handler, record)
        record = {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}
    if not isinstance(record, Mapping):
        raise UsageError(
            "a record must be a dict, a Row or a dataclass",
            got=repr(record),
            remedy="send one of them",
        )
    if handler.row is None:
        return Row(**record)
    parts = {}
    for name, _ in handler.row.parts:
        if name in record:
            parts[name] = record[name]
        else:
            default = handler.row.defaults.get(name)
            if default is None:
                raise UsageError(
                    f"the record for on_{handler.name} has no '{name}', which "
                    f"{handler.row.name} has",
                    got=", ".join(map(str, record)),
                    remedy="send it, None if it is not known, or give the field a default",
                )
            parts[name] = default()
    return started(handler.row, _checked(handler, handler.row.of(parts)))


def _checked(handler: Handler, row: Any) -> Any:
    assert handler.row is not None
    try:
        return handler.row.normal(row, f"the row for on_{handler.name}")
    except TypeMistake as mistake:
        raise UsageError(str(mistake), remedy="send a row of that type") from None
