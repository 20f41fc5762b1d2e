"""States and timers as handlers use them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, MutableMapping, Sequence
from datetime import datetime
from typing import Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class ValueState(ABC, Generic[T]):
    """A key's value, or None.

    >>> class Last(hg.Process):
    ...     last = hg.value_state(int)
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[int]:
    ...         yield self.last.get() or 0
    ...         self.last.set(row.n)
    >>> driver = ProcessDriver(Last())
    >>> driver.send("rows", {"n": 5}, key=1), driver.send("rows", {"n": 6}, key=1)
    ([0], [5])
    """

    @abstractmethod
    def get(self) -> T | None:
        """The value that was set, or None."""

    @abstractmethod
    def set(self, value: T) -> None:
        """Keep a value."""

    @abstractmethod
    def clear(self) -> None:
        """Delete the value."""


class ListState(ABC, Generic[T]):
    """A key's list of values, in the order of appending.

    >>> class Pairs(hg.Process):
    ...     kept = hg.list_state(int)
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[list[int]]:
    ...         self.kept.append(row.n)
    ...         if len(self.kept) == 2:
    ...             yield list(self.kept)
    ...             self.kept.clear()
    >>> driver = ProcessDriver(Pairs())
    >>> driver.send("rows", {"n": 5}, key=1), driver.send("rows", {"n": 6}, key=1)
    ([], [[5, 6]])
    """

    @abstractmethod
    def __iter__(self) -> Iterator[T]: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def append(self, value: T) -> None:
        """Append a value."""

    @abstractmethod
    def extend(self, values: Sequence[T]) -> None:
        """Append several values."""

    @abstractmethod
    def clear(self) -> None:
        """Delete all values."""


class MapState(MutableMapping[K, V]):
    """A key's dict, stored entry by entry.

    >>> class Words(hg.Process):
    ...     seen = hg.map_state(str, int)
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.seen[row.word] = self.seen.get(row.word, 0) + 1
    >>> driver = ProcessDriver(Words())
    >>> driver.send_batch([("rows", {"word": word}, 1, None) for word in ("to", "be", "to")])
    []
    >>> driver.state("seen", key=1)
    {'be': 1, 'to': 2}
    """


class Timer(ABC):
    """Calls the handler `on_<name>` for a key at a set time; each key has one such timer.

    >>> class Remind(hg.Process):
    ...     deadline = hg.timer("event")
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.deadline.set(ctx.timestamp + timedelta(minutes=30))
    ...     def on_deadline(self, ctx: hg.Context) -> hg.Out[str]:
    ...         yield f"{ctx.key[0]} at {ctx.timestamp:%H:%M}"
    >>> driver = ProcessDriver(Remind())
    >>> driver.send("rows", {}, key="Ann", at="2026-01-01T12:00:00")
    []
    >>> driver.advance_watermark("2026-01-01T13:00:00")
    ['Ann at 12:30']
    """

    @abstractmethod
    def set(self, at: datetime) -> None:
        """Call the handler at this time (UTC) instead of any time set before."""

    @abstractmethod
    def cancel(self) -> None:
        """Do not call the handler."""
