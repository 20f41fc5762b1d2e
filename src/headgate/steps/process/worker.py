"""A task in a Python worker: Arrow batches of rows and state in, outputs and new state out."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Row

from headgate.steps.process.arrow import ArrowProcess
from headgate.steps.process.arrow_task import ArrowTask
from headgate.steps.process.change import Loaded
from headgate.steps.process.codecs import DictOf, ListOf
from headgate.steps.process.declare import DeclaredState, Tagged
from headgate.steps.process.engine import NEVER, Engine
from headgate.steps.process.failure import FAILURES, HandlerError
from headgate.steps.process.layout import Layout
from headgate.steps.process.records import BadRow, RowOf
from headgate.steps.process.remote import NUMBER, Large, Remote
from headgate.steps.process.wire import CLOCK, FIRST_WITH_STATE, PORT, SECRET, WATERMARK, Wire
from headgate.steps.process.writer import Writer

# before what a batch has of lists, maps and rows come the flag, input, number, key, state, and the
# number of a key with large lists or maps
_LARGE, _BEFORE = 5, 6
_MADE_BETWEEN_COLLECTIONS = 100_000


class HandlerFailed(Exception):
    """Tells the driver of a handler's error; its text is a line that the driver reads."""


def run_task(payload: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run a task over the batches that the kernel sends."""
    wire: Wire = cloudpickle.loads(payload)
    if isinstance(wire.function, ArrowProcess):
        yield from _run_arrow(wire, batches)
        return
    engine = Engine(wire.function, wire.shape, step=wire.step, on_error=wire.on_error)
    task = Task(wire, engine)
    with _opened(wire):
        try:
            with _collecting_less():
                yield from task.run(batches)
        finally:
            if task.remote is not None:
                task.remote.close()


def _run_arrow(wire: Wire, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    task = ArrowTask(wire)
    with _opened(wire):
        yield from task.run(batches)


@contextmanager
def _opened(wire: Wire) -> Iterator[None]:
    """Open the function and close it again; an error goes to the driver in its form."""
    function = wire.function
    try:
        with _handler_errors(wire, "open", "before the first row of a task"):
            function.open()
        try:
            yield
        except BaseException:
            with suppress(Exception):  # the first error is the one to report
                function.close()
            raise
        with _handler_errors(wire, "close", "after the last row of a task"):
            function.close()
    except HandlerError as error:
        raise HandlerFailed(error.for_jvm()) from error.error


@contextmanager
def _handler_errors(wire: Wire, method: str, about: str) -> Iterator[None]:
    try:
        yield
    except FAILURES as error:
        raise HandlerError(wire.step, method, None, None, error, about) from error


@contextmanager
def _collecting_less() -> Iterator[None]:
    """Look for cycles seldom, and not among what was there before.

    Thousands of rows are made at once, and none is garbage: to look for it took a third of the
    time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(_MADE_BETWEEN_COLLECTIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


class _Keys:
    """The keys of a batch, as rows only if a handler asks for one."""

    def __init__(self, codec: RowOf, column: pa.Array) -> None:
        self.codec, self.column = codec, column
        self._rows: list[Row] | None = None

    def row(self, number: int) -> Row:
        if self._rows is None:
            # by number: only users know the names of the parts
            parts = [
                codec.decode(self.column.field(n)) for n, (_, codec) in enumerate(self.codec.parts)
            ]
            self._rows = self.codec.make(parts, len(self.column))
        return self._rows[number]


class Task:
    """The keys of a task, one after the other: a key's rows follow each other, over batches too."""

    def __init__(self, wire: Wire, engine: Engine) -> None:
        self.wire, self.engine = wire, engine
        self.layout = Layout(wire.shape)
        self.writer = Writer(wire, self.layout)
        self.remote: Remote | None = None
        self._port = 0
        self._end = self._end_values if engine.plain else self._end_key
        self._at_work = False
        self._was_new = False
        self._keys = _Keys(wire.key, pa.array([]))
        self._number = -1  # of the key that is at work, among the keys of the batch it began in
        self._place = -1  # of the same key, among those that the writer was given

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through all batches."""
        for batch in batches:
            self._batch(batch)
            yield from self._flush()
            if self._at_work:
                self._place = self.writer.keys(self._keys.column.slice(self._number, 1))
        if self._at_work:
            self._end()
        yield from self._flush()
        counted = self.engine.context.counted
        if counted:
            yield self.writer.counts(counted)

    def _flush(self) -> Iterator[pa.RecordBatch]:
        try:
            yield from self.writer.flush(self.engine.take_outputs())
        except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
            # half of a pair of UTF-16, for instance: no check of a value looks so deep
            about = "when what the handlers gave was written"
            raise HandlerError(self.wire.step, "a batch", None, None, error, about) from error

    def _key(self) -> Row:
        return self._keys.row(self._number)

    def _end_key(self) -> None:
        change = self.engine.finish()
        if change is not None and not (change.empty and self._was_new):
            self.writer.change(self._place, change, self._was_new)

    def _end_values(self) -> None:
        """The same for a function that keeps values alone, where little is to be looked at."""
        values = self.engine.together
        if values.changed():
            row = values.taken()
            empty = row[0] is None and all(value is None for value in row)
            if not (empty and self._was_new):
                self.writer.values(self._place, row, empty, self._was_new)

    def _batch(self, batch: pa.RecordBatch) -> None:
        flags, inputs = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        numbers = batch.column(2)
        times = repeat(None) if numbers.null_count == len(numbers) else numbers.to_pylist()
        keys = _Keys(self.wire.key, batch.column(3).filter(pa.array(flags > 0)))
        states = self._states(batch, flags)
        at = _BEFORE + len(self.engine.lists) + len(self.engine.maps)
        rows = [
            codec.each(_where(batch.column(at + n), inputs == n))
            for n, codec in enumerate(self.wire.rows)
        ]
        names = [handler.name for handler in self.wire.shape.inputs]
        engine, context = self.engine, self.engine.context
        context.row_key = self._key
        plain, load, nothing = engine.plain, engine.together.load, engine.together.empty
        end, first = self._end, self.writer.keys(keys.column)
        handlers, side, take = engine.handlers, engine.on_error == "side", engine.take
        key_number, event = -1, NEVER
        name, row, result = "", None, None
        try:
            # names of this loop stand for look-ups that would be made for every row
            out = engine.outputs
            main, main_times = out.main.append, out.times.append
            for flag, input, time in zip(flags.tolist(), inputs.tolist(), times, strict=False):
                if flag:
                    if self._at_work:
                        end()
                    key_number += 1
                    self._at_work, self._was_new = True, flag != FIRST_WITH_STATE
                    self._keys, self._number = keys, key_number
                    self._place = first + key_number
                    if plain:
                        load(*(nothing if flag != FIRST_WITH_STATE else next(states)))
                    else:
                        engine.load(self._key, None if self._was_new else next(states))
                if input >= 0:
                    name, result = names[input], None
                    try:
                        row = next(rows[input])
                    except BadRow as bad:
                        engine.bad_row(name, bad, time)
                        continue
                    if side:
                        engine.row(input, row, time)
                        continue
                    context.micros = time
                    result = handlers[input](row, context)
                    if result is not None:
                        for value in result:
                            taken = take(value)
                            if taken is not None:
                                main(taken)
                                main_times(time)
                            elif value.__class__ is Tagged:
                                engine.side(name, value, out)
                            else:
                                engine.deliver(name, (value,))
                elif input == WATERMARK:
                    assert time is not None
                    event = time
                elif input == CLOCK:
                    assert time is not None
                    engine.begin(event, time)
                    out = engine.outputs
                    main, main_times = out.main.append, out.times.append
                elif input == PORT:
                    assert time is not None
                    self._port = time
                elif input == SECRET:
                    assert time is not None
                    self.remote = Remote(self._port, time)
        except HandlerError:
            raise
        except FAILURES as error:
            raise engine.failed(name, row, error, result) from error

    def _states(self, batch: pa.RecordBatch, flags: np.ndarray[Any, Any]) -> Iterator[Any]:
        """What the keys of a batch have, in their order."""
        there = flags == FIRST_WITH_STATE
        if not there.any():
            return iter(())
        main = _where(batch.column(4), there)
        columns = [c.codec.decode(main.field(n)) for n, c in enumerate(self.layout.columns)]
        sizes = [len(p) for p in (self.layout.values, self.layout.ends, self.layout.entries)]
        values, ends, entries, times = _cut(columns, sizes)
        count = len(main)
        if self.engine.plain:
            return _across(values, count)
        lists, maps = self.wire.shape.of_kind("list"), self.wire.shape.of_kind("map")
        # states that were declared since have no count yet
        had = [entries[2 * n] for n in range(len(lists))] + entries[2 * len(lists) :]
        had = [[n or 0 for n in column] for column in had]
        numbers = _where(batch.column(_LARGE), there)
        large: list[Any] = numbers.to_pylist() if numbers.null_count < count else [None] * count
        found: list[list[Any]] = []
        for number, state in enumerate((*lists, *maps)):
            whole = ListOf(state.value) if state.key is None else DictOf(state.key, state.value)
            empty = list if state.key is None else dict
            held = whole.decode(_where(batch.column(_BEFORE + number), there))
            for at, value in enumerate(held):
                if value is None:
                    size, key = had[number][at], large[at]
                    stays = size and key is not None
                    held[at] = self._large(number, state, size, key) if stays else empty()
            found.append(held)
        nexts = [entries[2 * n + 1] for n in range(len(lists))]
        return map(
            Loaded,
            _across(values, count),
            _across(ends, count),
            _across(found[: len(lists)], count),
            _across([[n or 0 for n in column] for column in nexts], count),
            _across(found[len(lists) :], count),
            _across(times if self.layout.times else [], count),
            _across(had, count),
        )

    def _large(self, number: int, state: DeclaredState, size: int, key: int) -> Large:
        """A list or map that stays where it is."""

        def ask(wanted: Sequence[Any]) -> Any:
            assert self.remote is not None
            return self.remote.ask(number, key, state.key or NUMBER, state.value, wanted)

        return Large(size, ask)


def _where(column: pa.Array, mask: np.ndarray[Any, Any]) -> pa.Array:
    return column if mask.all() else column.filter(pa.array(mask))


def _cut(columns: list[Any], sizes: list[int]) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    parts = []
    for size in sizes:
        parts.append(columns[:size])
        columns = columns[size:]
    return parts[0], parts[1], parts[2], columns


def _across(columns: list[list[Any]], count: int) -> Iterator[Any]:
    return zip(*columns, strict=True) if columns else repeat((), count)
