"""Lookups as of a time in plain Python, given the watermarks of each batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

NEVER, ENDED = float("-inf"), float("inf")


@dataclass(frozen=True)
class Rate:
    """A row of the table; times are in seconds. Without a value it deletes its key."""

    key: str | None
    time: int | None
    value: int | None


@dataclass(frozen=True)
class Order:
    id: int
    key: str | None
    time: int | None
    other: int | None
    """Another time, which is not the event time."""


@dataclass
class AsOfTruth:
    """`keep` is in seconds; `other` says by which time of an order a version is looked for."""

    keep: int
    missing: str
    other: bool
    versions: dict[str, dict[int, int | None]] = field(default_factory=dict)
    waiting: list[Order] = field(default_factory=list)
    out: list[tuple[str, int, int | None]] = field(default_factory=list)

    def batch(
        self, rates: Sequence[Rate], orders: Sequence[Order], mark: float, watermark: float
    ) -> None:
        """One batch; `mark` is the table's own watermark before it, `watermark` the job's."""
        horizon = watermark - self.keep
        for rate in rates:
            if rate.key is None or rate.time is None:
                continue
            mine = self.versions.setdefault(rate.key, {})
            if not mine or not rate.time < max(mine) <= horizon:
                mine[rate.time] = rate.value
        ready = [order for order in self.waiting if self._at(order) < mark]
        self.waiting = [order for order in self.waiting if not self._at(order) < mark]
        for order in orders:
            if order.key is None or self._time(order) is None or self._at(order) < mark:
                ready.append(order)
            else:
                self.waiting.append(order)
        for order in ready:
            self._answer(order)
        for key, mine in list(self.versions.items()):
            past = [time for time in mine if time <= horizon]
            for time in past:
                if time != max(past):
                    del mine[time]
            if past and max(past) == max(mine) and mine[max(past)] is None:
                del self.versions[key]

    def _time(self, order: Order) -> int | None:
        return order.other if self.other else order.time

    def _at(self, order: Order) -> int:
        time = self._time(order)
        assert time is not None
        return time

    def _answer(self, order: Order) -> None:
        found = None
        if order.key is not None and self._time(order) is not None:
            mine = self.versions.get(order.key, {})
            valid = [time for time in mine if time <= self._at(order)]
            found = mine[max(valid)] if valid else None
        if found is not None or self.missing == "null":
            self.out.append(("out", order.id, found))
        elif self.missing == "side":
            self.out.append(("missing", order.id, None))
