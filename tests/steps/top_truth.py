"""The first rows of keys and windows, and streams of changes, in plain Python.

All rows are kept, and each table is computed anew from them: what changes is what differs between
the tables before and after a batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

NEVER, ENDED = float("-inf"), float("inf")
Table = dict[Any, Any]
Changes = list[tuple[Any, Any]]
"""A key with its new row, or with None when it is gone."""


@dataclass(frozen=True)
class Bid:
    """A row; times are in seconds. `place` is the partition and the offset there."""

    id: int
    key: str | None
    kind: str
    price: int | None
    time: int | None
    place: tuple[int, int]


Order = Callable[[Bid], Any]


def falling(bid: Bid) -> Any:
    """By price, the highest first and nulls last, then by place."""
    return bid.price is None, -(bid.price or 0), bid.place


def rising(bid: Bid) -> Any:
    """By price, nulls first, then the newest id."""
    return bid.price is not None, bid.price or 0, -bid.id


def changed(before: Table, after: Table) -> Changes:
    """What makes one table of another."""
    gone = [(key, None) for key in before.keys() - after.keys()]
    return [(key, row) for key, row in after.items() if before.get(key) != row] + gone


@dataclass
class TopTruth:
    """The first `n` rows of each key, as a table by key and rank."""

    n: int
    order: Order
    rows: dict[Any, list[Bid]] = field(default_factory=lambda: defaultdict(list))
    table: Table = field(default_factory=dict)

    def batch(self, came: Sequence[Bid]) -> Changes:
        before = dict(self.table)
        for bid in came:
            self.rows[bid.key].append(bid)
        for key in {bid.key for bid in came}:
            for rank, bid in enumerate(sorted(self.rows[key], key=self.order)[: self.n], 1):
                self.table[key, rank] = bid
        return changed(before, self.table)


@dataclass
class SumTruth:
    """Sums of each key and kind that are not below zero, and what follows on their changes."""

    n: int
    rows: dict[Any, list[Bid]] = field(default_factory=lambda: defaultdict(list))
    sums: Table = field(default_factory=dict)
    kinds: Table = field(default_factory=dict)

    def batch(self, came: Sequence[Bid]) -> tuple[Changes, Changes, list[tuple[Bid, int | None]]]:
        """Changes of the sums, of the first kinds of each key, and what the rows find."""
        before, kinds = dict(self.sums), dict(self.kinds)
        for bid in came:
            self.rows[bid.key, bid.kind].append(bid)
        for key in {(bid.key, bid.kind) for bid in came}:
            prices = [bid.price for bid in self.rows[key] if bid.price is not None]
            self.sums.pop(key, None)
            if prices and sum(prices) >= 0:
                self.sums[key] = (sum(prices), len(self.rows[key]))
        self.kinds = self._first({bid.key for bid in came})
        found = [
            (bid, None if bid.key is None else self.sums.get((bid.key, bid.kind), (None,))[0])
            for bid in came
        ]
        return changed(before, self.sums), changed(kinds, self.kinds), found

    def _first(self, keys: Iterable[str | None]) -> Table:
        made = dict(self.kinds)
        for key in keys:
            mine = [(-s[0], kind, s[1]) for (k, kind), s in self.sums.items() if k == key]
            for rank in range(1, self.n + 1):
                made.pop((key, rank), None)
            for rank, (total, kind, count) in enumerate(sorted(mine)[: self.n], 1):
                made[key, rank] = (kind, -total, count)
        return made


@dataclass
class WindowTopTruth:
    """The first `n` rows of each key and window, once, when the watermark passes its end."""

    n: int
    order: Order
    size: int
    slide: int
    offset: int = 0
    before: float = NEVER
    open: dict[tuple[Any, int], list[Bid]] = field(default_factory=lambda: defaultdict(list))
    late: int = 0
    out: int = 0

    def batch(self, came: Sequence[Bid], now: float) -> list[tuple[int | None, int | None, Bid]]:
        """Rows as (end, rank, row); late ones have neither."""
        told: list[tuple[int | None, int | None, Bid]] = []
        for bid in came:
            ends = [end for end in self.ends(bid.time) if end > self.before]
            if not ends:
                told.append((None, None, bid))
                self.late += 1
            for end in ends:
                self.open[bid.key, end].append(bid)
        for key, end in sorted((k for k in self.open if k[1] <= now), key=str):
            first = sorted(self.open.pop((key, end)), key=self.order)[: self.n]
            told += [(end, rank, bid) for rank, bid in enumerate(first, 1)]
            self.out += len(first)
        self.before = now
        return told

    def ends(self, time: int | None) -> list[int]:
        """The ends of the windows that a time is in."""
        if time is None:
            return []
        first = (time - self.offset) // self.slide * self.slide + self.offset
        return [start + self.size for start in range(first, time - self.size, -self.slide)]
