"""The state of one key in memory, as the test driver keeps it, and through the encoders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

import pyarrow as pa

from headgate.steps.process.change import Change, Loaded
from headgate.steps.process.codecs import DictOf, ListOf
from headgate.steps.process.layout import Layout, Micros
from headgate.steps.process.shape import Shape

Entry: TypeAlias = tuple[Any, int | None]
"""A value with the time at which it is over, if there is one."""


@dataclass
class KeyState:
    """All that is kept of a key."""

    values: list[Any]
    ends: list[int | None]
    lists: list[list[Entry]]
    nexts: list[int]
    maps: list[dict[Any, Entry]]
    times: list[int | None]
    ending: list[int] = field(default_factory=list)
    """Which of the values have an end."""

    @staticmethod
    def empty(shape: Shape) -> KeyState:
        """The state of a key that has none."""
        values, lists = shape.of_kind("value"), shape.of_kind("list")
        ending = [n for n, s in enumerate(values) if s.ttl is not None]
        return KeyState(
            [None] * len(values),
            [None] * len(ending),
            [[] for _ in lists],
            [0] * len(lists),
            [{} for _ in shape.of_kind("map")],
            [None] * (len(shape.timers) + shape.expires),
            ending,
        )

    def value(self, number: int, clock: int) -> Any:
        """A value, if it is not over."""
        if number in self.ending:
            end = self.ends[self.ending.index(number)]
            if end is not None and end <= clock:
                return None
        return self.values[number]

    def list_of(self, number: int, clock: int) -> list[Any]:
        """The values of a list that are not over."""
        return [v for v, end in self.lists[number] if end is None or end > clock]

    def map_of(self, number: int, clock: int) -> dict[Any, Any]:
        """The entries of a map that are not over."""
        entries = self.maps[number].items()
        return {k: v for k, (v, end) in entries if end is None or end > clock}

    def loaded(self, clock: int) -> Loaded:
        """As the engine takes it; it changes no value, and handlers get copies of them."""
        return Loaded(
            list(self.values),
            list(self.ends),
            [self.list_of(n, clock) for n in range(len(self.lists))],
            list(self.nexts),
            [self.map_of(n, clock) for n in range(len(self.maps))],
            list(self.times),
            [len(entries) for entries in (*self.lists, *self.maps)],
        )

    def changed(self, shape: Shape, change: Change, clock: int) -> KeyState:
        """The state after a change that was made at a time."""
        lists, nexts, at = [], [], 0
        for number, (state, made) in enumerate(
            zip(shape.of_kind("list"), change.lists, strict=True)
        ):
            kept = [(v, e) for v, e in self.lists[number] if e is None or e > clock]
            if made is not None:
                end = None if state.ttl is None else clock + _micros(state.ttl)
                added = [(v, end) for v in made.added]
                kept = ([] if made.cleared else kept) + added
            lists.append(kept)
            nexts.append(change.entries[at + 1])
            at += 2
        maps = []
        for number, (state, put) in enumerate(zip(shape.of_kind("map"), change.maps, strict=True)):
            there = {k: (v, e) for k, (v, e) in self.maps[number].items() if e is None or e > clock}
            if put is not None:
                end = None if state.ttl is None else clock + _micros(state.ttl)
                there = {} if put.cleared else there
                for key in put.removed:
                    there.pop(key, None)
                there.update({k: (v, end) for k, v in put.put.items()})
            maps.append(there)
        return KeyState(
            list(change.values), list(change.ends), lists, nexts, maps, list(change.times),
            self.ending,
        )  # fmt: skip


def round_trip(shape: Shape, states: Sequence[KeyState]) -> list[KeyState]:
    """The same states, written as Arrow columns and read back."""
    layout, size = Layout(shape), len(states)
    columns: list[tuple[Any, list[Any]]] = []
    for number, column in enumerate(layout.values):
        columns.append((column.codec, [s.values[number] for s in states]))
    for number, column in enumerate(layout.ends):
        columns.append((column.codec, [s.ends[number] for s in states]))
    for number, column in enumerate(layout.times):
        columns.append((column.codec, [s.times[number] for s in states]))
    for number, of in enumerate(shape.of_kind("list")):
        columns.append((ListOf(of.value), [[v for v, _ in s.lists[number]] for s in states]))
        columns.append((ListOf(Micros()), [[e for _, e in s.lists[number]] for s in states]))
    for number, of in enumerate(shape.of_kind("map")):
        assert of.key is not None
        items = [s.maps[number] for s in states]
        columns.append(
            (DictOf(of.key, of.value), [{k: v for k, (v, _) in m.items()} for m in items])
        )
        columns.append(
            (DictOf(of.key, Micros()), [{k: e for k, (_, e) in m.items()} for m in items])
        )
    arrays = [codec.encode(values) for codec, values in columns]
    batch = pa.record_batch(arrays, names=[str(n) for n in range(len(arrays))])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    read = pa.ipc.open_stream(sink.getvalue()).read_next_batch() if size else batch
    found = [
        codec.decode(read.column(number)) if size else []
        for number, (codec, _) in enumerate(columns)
    ]
    return [_state(shape, layout, found, number, states[number]) for number in range(size)]


def _state(
    shape: Shape, layout: Layout, found: list[list[Any]], number: int, old: KeyState
) -> KeyState:
    row = iter([column[number] for column in found])
    values = [next(row) for _ in layout.values]
    ends = [next(row) for _ in layout.ends]
    times = [next(row) for _ in layout.times]
    lists = [list(zip(next(row), next(row), strict=True)) for _ in shape.of_kind("list")]
    maps = []
    for _ in shape.of_kind("map"):
        items, over = next(row), next(row)
        maps.append({k: (v, over[k]) for k, v in items.items()})
    return KeyState(values, ends, lists, list(old.nexts), maps, times, old.ending)


def _micros(ttl: timedelta) -> int:
    return round(ttl.total_seconds() * 1_000_000)
