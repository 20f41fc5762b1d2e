"""Outputs and changes of state as Arrow batches of one schema, which the kernel reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.steps.process.change import Change, ListChange, MapChange
from headgate.steps.process.codecs import Codec, DictOf, ListOf
from headgate.steps.process.engine import Outputs
from headgate.steps.process.layout import Layout
from headgate.steps.process.wire import COUNT, DELETE, PUT, PUT_NEW, Wire
from headgate.steps.process.yielded import Yielded

_ERRORS = pa.struct(
    [pa.field(n, pa.string()) for n in ("handler", "key", "row", "error", "location")]
)
_NONE = pa.struct([pa.field("none", pa.bool_())])


class Writer:
    """Collects changes of state and makes batches of them and of outputs."""

    def __init__(self, wire: Wire, layout: Layout) -> None:
        self.wire, self.layout = wire, layout
        shape = wire.shape
        parts = enumerate(wire.key.parts)
        self.key_type = pa.struct([pa.field(f"key{n}", codec.arrow) for n, (_, codec) in parts])
        self.state_type = pa.struct([pa.field(c.name, c.codec.arrow) for c in layout.columns])
        self._old = pa.struct([pa.field(c.name, c.codec.arrow) for c in layout.times])
        self._lists = [
            pa.struct(
                [
                    pa.field("cleared", pa.bool_()),
                    pa.field("first", pa.int64()),
                    pa.field("added", pa.list_(s.value.arrow)),
                ]
            )
            for s in shape.of_kind("list")
        ]
        self._maps = [
            pa.struct(
                [
                    pa.field("cleared", pa.bool_()),
                    pa.field("put", pa.map_(s.key.arrow, s.value.arrow)),
                    pa.field("removed", pa.list_(s.key.arrow)),
                ]
            )
            for s in shape.of_kind("map")
            if s.key is not None
        ]
        self._outputs = [
            Yielded(shape.output) if shape.output else None,
            *[Yielded(s.value) for s in shape.sides],
        ]
        self._output_types = [output.arrow if output else _NONE for output in self._outputs]
        if wire.on_error == "side":
            self._output_types.append(_ERRORS)
        self._whole: list[pa.Array] = []
        self._known = 0
        self._keys: list[int] = []
        self._rows_kept: list[Sequence[Any]] = []
        self._changes: list[Change] = []
        self._kinds: list[int] = []

    def keys(self, column: pa.Array) -> int:
        """Take keys of which some may change before the next flush: the place of the first."""
        first = self._known
        self._whole.append(column)
        self._known += len(column)
        return first

    def change(self, place: int, change: Change, new: bool) -> None:
        """Remember what is to be written of a key."""
        self._changes.append(change)
        row = [*change.values, *change.ends, *change.entries, *change.times]
        self.values(place, row, change.empty, new)

    def values(self, place: int, row: Sequence[Any], empty: bool, new: bool) -> None:
        """Remember the main row of a key, which is all of it where nothing but values is kept."""
        self._keys.append(place)
        self._rows_kept.append(row)
        self._kinds.append(DELETE if empty else PUT_NEW if new else PUT)

    def flush(self, outputs: Outputs) -> Iterator[pa.RecordBatch]:
        """All that was given since the last time."""
        if outputs.main:
            yield self._rows(0, outputs.main, outputs.times)
        for number, (name, values) in enumerate(outputs.sides.items()):
            if values:
                yield self._rows(1 + number, values, outputs.side_times[name])
        if outputs.errors:
            number = len(self._outputs)
            errors = pa.array(outputs.errors, _ERRORS)
            parts = {f"o{number}": errors, "number": pa.array(outputs.error_times, pa.int64())}
            yield self.batch(number, len(errors), parts)
        if self._keys:
            yield self._written()
            self._keys, self._rows_kept, self._changes, self._kinds = [], [], [], []
        self._whole, self._known = [], 0

    def counts(self, counted: Mapping[str, int]) -> pa.RecordBatch:
        """What handlers counted."""
        names = pa.array(list(counted), pa.string())
        return self.batch(
            COUNT,
            len(counted),
            {"name": names, "number": pa.array(list(counted.values()), pa.int64())},
        )

    def _rows(
        self, number: int, rows: list[tuple[Any, ...]], times: list[int | None]
    ) -> pa.RecordBatch:
        output = self._outputs[number]
        assert output is not None
        parts = {f"o{number}": output.encode(rows), "number": pa.array(times, pa.int64())}
        return self.batch(number, len(rows), parts)

    def _written(self) -> pa.RecordBatch:
        changes, rows, size = self._changes, self._rows_kept, len(self._keys)
        columns = (
            [
                column.codec.encode(values)
                for column, values in zip(self.layout.columns, zip(*rows, strict=True), strict=True)
            ]
            if rows[0]
            else [pa.nulls(size, pa.bool_())]
        )
        parts: dict[str, pa.Array] = {
            "key": self._key_column(),
            "state": pa.StructArray.from_arrays(columns, fields=list(self.state_type)),
        }
        if self.layout.times:
            olds = zip(*[c.old_times for c in changes], strict=True)
            parts["old"] = pa.StructArray.from_arrays(
                [
                    column.codec.encode(values)
                    for column, values in zip(self.layout.times, olds, strict=True)
                ],
                fields=list(self._old),
            )
        for number, state in enumerate(self.wire.shape.of_kind("list")):
            parts[f"l{number}"] = self._list_column(
                number, state.value, [c.lists[number] for c in changes]
            )
        for number, state in enumerate(self.wire.shape.of_kind("map")):
            assert state.key is not None
            parts[f"m{number}"] = self._map_column(
                number, state.key, state.value, [c.maps[number] for c in changes]
            )
        return self.batch(pa.array(self._kinds, pa.int8()), size, parts)

    def _key_column(self) -> pa.Array:
        """The keys as they came: nothing is lost in them."""
        whole = self._whole
        keys = whole[0] if len(whole) == 1 else pa.concat_arrays(whole)
        return keys.take(pa.array(self._keys, pa.int64())).cast(self.key_type)

    def _list_column(
        self, number: int, codec: Codec, changes: Sequence[ListChange | None]
    ) -> pa.Array:
        if not any(changes):
            return pa.nulls(len(changes), self._lists[number])
        return pa.StructArray.from_arrays(
            [
                pa.array([c is not None and c.cleared for c in changes], pa.bool_()),
                pa.array([0 if c is None else c.first for c in changes], pa.int64()),
                ListOf(codec).encode([[] if c is None else c.added for c in changes]),
            ],
            fields=list(self._lists[number]),
            mask=pa.array([c is None for c in changes]),
        )

    def _map_column(
        self, number: int, key: Codec, value: Codec, changes: Sequence[MapChange | None]
    ) -> pa.Array:
        if not any(changes):
            return pa.nulls(len(changes), self._maps[number])
        return pa.StructArray.from_arrays(
            [
                pa.array([c is not None and c.cleared for c in changes], pa.bool_()),
                DictOf(key, value).encode([{} if c is None else c.put for c in changes]),
                ListOf(key).encode([[] if c is None else c.removed for c in changes]),
            ],
            fields=list(self._maps[number]),
            mask=pa.array([c is None for c in changes]),
        )

    def batch(
        self, kind: int | pa.Array, size: int, parts: Mapping[str, pa.Array]
    ) -> pa.RecordBatch:
        """Rows of one kind, or of several, with these columns; the others are null."""
        kinds = pa.array(np.full(size, kind, np.int8)) if isinstance(kind, int) else kind
        columns = [kinds]
        names = ["kind"]
        for name, type in self._types():
            names.append(name)
            columns.append(parts[name] if name in parts else pa.nulls(size, type))
        return pa.RecordBatch.from_arrays(columns, names=names)

    def _types(self) -> Iterator[tuple[str, pa.DataType]]:
        yield "name", pa.string()
        yield "number", pa.int64()
        yield "key", self.key_type
        yield "state", self.state_type
        if self.layout.times:
            yield "old", self._old
        for number, type in enumerate(self._lists):
            yield f"l{number}", type
        for number, type in enumerate(self._maps):
            yield f"m{number}", type
        for number, type in enumerate(self._output_types):
            yield f"o{number}", type
