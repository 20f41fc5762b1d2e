"""A task of a vectorised process function: Arrow batches to its handlers, columns of state back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.steps.process.arrow import ArrowContext, ColumnState, DeclaredColumn
from headgate.steps.process.codecs import Codec, TypeMistake
from headgate.steps.process.engine import Now
from headgate.steps.process.failure import FAILURES, HandlerError
from headgate.steps.process.layout import Layout
from headgate.steps.process.records import Struct
from headgate.steps.process.returned import NotRows
from headgate.steps.process.shape import columns_of
from headgate.steps.process.wire import (
    CLOCK,
    DELETE,
    FIRST_WITH_STATE,
    PUT,
    PUT_NEW,
    WATERMARK,
    Wire,
)
from headgate.steps.process.writer import Writer

_ROWS = 6
"""The first column of inputs: before it are flag, input, number, key, state and large."""
_TIME = pa.timestamp("us", "UTC")


class LiveColumn(ColumnState[Any]):
    """The values of the keys that are at work."""

    def __init__(self, declared: DeclaredColumn) -> None:
        self._name, self._codec = declared.name, declared.value
        self._values: pa.Array = pa.array([], self._codec.arrow)
        self._changed = False

    def load(self, values: pa.Array) -> None:
        """Take the values that the keys have."""
        self._values, self._changed = values, False

    def get(self) -> pa.Array:
        return self._values

    def set(self, values: Any) -> None:
        what = f"the state '{self._name}'"
        column = _column(values, self._codec, what)
        if len(column) != len(self._values):
            expected = f"{len(self._values)} values, one for each key"
            raise TypeMistake(what, expected, f"{len(column)} values")
        self._values, self._changed = column, True


class ArrowNow(ArrowContext):
    """The context of the batch that is at work."""

    def __init__(self) -> None:
        self.now = Now()
        self.keys = pa.record_batch({})
        self.key_of = pa.array([], pa.int64())
        self.timestamps = pa.array([], _TIME)

    @property
    def watermark(self) -> datetime:
        return self.now.watermark

    @property
    def processing_time(self) -> datetime:
        return self.now.processing_time

    def count(self, metric: str, by: int = 1) -> None:
        self.now.count(metric, by)


@dataclass
class _Last:
    """The last key of a batch, whose rows may go on in the next."""

    key: pa.Array
    values: list[pa.Array]
    new: bool


class ArrowTask:
    """The batches of a task, one after the other; a key's rows may be in several of them."""

    def __init__(self, wire: Wire) -> None:
        self.wire, self.context = wire, ArrowNow()
        self.writer = Writer(wire, Layout(wire.shape))
        self._columns: list[LiveColumn] = []
        for state in wire.shape.states:
            assert isinstance(state, DeclaredColumn)
            live = LiveColumn(state)
            wire.function.__dict__[state.name] = live
            self._columns.append(live)
        self._handlers = [getattr(wire.function, h.method) for h in wire.shape.inputs]
        self._last: _Last | None = None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Work through all batches."""
        for batch in batches:
            yield from self._batch(batch)
        counted = self.context.now.counted
        if counted:
            yield self.writer.counts(counted)

    def _batch(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        flags, inputs = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        self._times(inputs, batch.column(2))
        rows = inputs >= 0
        if not rows.any():
            return
        first = flags > 0
        goes_on = not first[np.argmax(rows)]
        keys, new, values = self._load(batch, flags, goes_on)
        numbers = np.cumsum(first) - 1 + int(goes_on)
        changed = False
        for input, handler in enumerate(self.wire.shape.inputs):
            mask = inputs == input
            if not mask.any():
                continue
            taken = pa.array(mask)
            # a handler sees the keys of its rows, and not those that only other inputs have
            of = np.unique(numbers[mask])
            places = pa.array(of, pa.int64())
            self.context.keys = pa.RecordBatch.from_arrays(
                keys.take(places).flatten(), names=[name for name, _ in self.wire.key.parts]
            )
            for live, column in zip(self._columns, values, strict=True):
                live.load(column.take(places))
            self.context.key_of = pa.array(np.searchsorted(of, numbers[mask]), pa.int64())
            self.context.timestamps = batch.column(2).filter(taken).cast(pa.int64()).view(_TIME)
            column = batch.column(_ROWS + input).filter(taken)
            given = pa.RecordBatch.from_arrays(column.flatten(), names=_names(column.type))
            yield from self._call(handler.name, self._handlers[input], given)
            for at, live in enumerate(self._columns):
                if live._changed:
                    values[at] = _replaced(values[at], of, live._values)
                    changed = True
        yield from self._written(keys, new, values, changed)

    def _times(self, inputs: np.ndarray[Any, Any], numbers: pa.Array) -> None:
        """The watermark and the time of the batch stand in rows of their own before all others."""
        for at in np.flatnonzero(inputs == WATERMARK):
            self.context.now.event = numbers[int(at)].as_py()
        for at in np.flatnonzero(inputs == CLOCK):
            self.context.now.clock = numbers[int(at)].as_py()

    def _load(
        self, batch: pa.RecordBatch, flags: np.ndarray[Any, Any], goes_on: bool
    ) -> tuple[pa.Array, np.ndarray[Any, Any], list[pa.Array]]:
        """The keys of a batch, which are new, and for each state their values."""
        first = pa.array(flags > 0)
        keys = batch.column(3).filter(first)
        new = flags[flags > 0] != FIRST_WITH_STATE
        held = batch.column(4).filter(first).flatten()  # null in keys that have none
        last = self._last if goes_on else None
        values = []
        for number, live in enumerate(self._columns):
            column = held[number].cast(live._codec.arrow)
            values.append(_after(last.values[number], column) if last else column)
        if last is not None:
            keys, new = _after(last.key, keys), np.concatenate([[last.new], new])
        return keys, new, values

    def _call(self, name: str, handler: Any, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        given: Any = None
        try:
            given = handler(rows, self.context)
            if isinstance(given, (pa.RecordBatch, pa.Table)):
                raise NotRows(handler, given)
            for value in () if given is None else given:
                for batch in self._given(name, value):
                    yield self.writer.batch(0, len(batch), {"o0": batch})
        except FAILURES as error:
            about = f"for {len(rows)} rows of {len(self.context.keys)} keys"
            raise HandlerError(
                self.wire.step, f"on_{name}", None, None, error, about, given
            ) from error

    def _given(self, name: str, value: Any) -> Iterator[pa.Array]:
        """A batch that a handler yielded as a column of structs."""
        what, output = f"what on_{name} yields", self.wire.shape.output
        if output is None:
            raise TypeMistake(what, "nothing: the function's `gives` names no columns", value)
        assert isinstance(output, Struct)
        if isinstance(value, pa.Table):
            for batch in value.to_batches():
                yield from self._given(name, batch)
            return
        if not isinstance(value, pa.RecordBatch):
            raise TypeMistake(what, "a RecordBatch", value)
        wanted = [part for part, _ in output.parts]
        if sorted(value.schema.names) != sorted(wanted):
            expected = f"columns {columns_of(output).simpleString()}"
            raise TypeMistake(what, expected, ", ".join(value.schema.names))
        columns = [
            _column(value.column(n), c, f"the column {n} of {what}") for n, c in output.parts
        ]
        yield pa.StructArray.from_arrays(columns, fields=list(output.arrow))

    def _written(
        self, keys: pa.Array, new: np.ndarray[Any, Any], values: list[pa.Array], changed: bool
    ) -> Iterator[pa.RecordBatch]:
        """What is to be written of the keys: one that has nothing left is deleted."""
        if changed:
            empty = np.logical_and.reduce([_nulls(column) for column in values])
            kinds = np.where(empty, DELETE, np.where(new, PUT_NEW, PUT)).astype(np.int8)
            kept = pa.array(~(empty & new))
            new = empty  # whether there is something to write over when its rows go on
            state = pa.StructArray.from_arrays(values, fields=list(self.writer.state_type))
            parts = {
                "key": keys.filter(kept).cast(self.writer.key_type),
                "state": state.filter(kept),
            }
            yield self.writer.batch(pa.array(kinds).filter(kept), len(parts["key"]), parts)
        end = len(keys) - 1
        self._last = _Last(
            keys.slice(end), [column.slice(end) for column in values], bool(new[end])
        )


def _names(kind: pa.StructType) -> list[str]:
    return [kind.field(n).name for n in range(kind.num_fields)]


def _replaced(column: pa.Array, places: np.ndarray[Any, Any], values: pa.Array) -> pa.Array:
    """The column with other values in some places."""
    if len(values) == len(column):
        return values
    order = np.arange(len(column))
    order[places] = len(column) + np.arange(len(places))
    return pa.concat_arrays([column, values]).take(pa.array(order, pa.int64()))


def _after(first: pa.Array, rest: pa.Array) -> pa.Array:
    return pa.concat_arrays([first, rest.cast(first.type)])


def _nulls(column: pa.Array) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = column.is_null().to_numpy(zero_copy_only=False)
    return found


def _column(values: Any, codec: Codec, what: str) -> pa.Array:
    """Values as a column of a codec's type."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    try:
        column = values if isinstance(values, pa.Array) else pa.array(values, codec.arrow)
        if column.type == codec.arrow:
            return column
        if not _of_a_kind(column.type, codec.arrow):
            raise TypeError("a column of another kind")
        return column.cast(codec.arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        kind = codec.spark.simpleString().upper()
        raise TypeMistake(
            what, f"a column that fits {kind}", getattr(values, "type", values)
        ) from error


_KINDS = (
    pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean,
    pa.types.is_timestamp, pa.types.is_date, pa.types.is_nested,
)  # fmt: skip
_WIDER = ((pa.types.is_integer, pa.types.is_floating), (pa.types.is_integer, pa.types.is_decimal))
_TEXT = (pa.string(), pa.large_string(), pa.string_view())
_BYTES = (pa.binary(), pa.large_binary(), pa.binary_view())


def _of_a_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type are meant as values of the other: a number is no text."""
    if pa.types.is_null(given):
        return True
    if pa.types.is_dictionary(given):
        return _of_a_kind(given.value_type, wanted)
    same = any(kind(given) and kind(wanted) for kind in _KINDS)
    wider = any(narrow(given) and wide(wanted) for narrow, wide in _WIDER)
    return same or wider or any(given in all and wanted in all for all in (_TEXT, _BYTES))
