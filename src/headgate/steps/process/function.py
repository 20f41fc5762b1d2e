"""What a user writes as a process function, and what its handlers get and give."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

from pyspark.sql import Row

from headgate.steps.process.declare import Declared, Tagged

T = TypeVar("T")

Out: TypeAlias = Iterator[T | Tagged[Any]]
"""What a handler returns: values of one type, and values for side outputs.

>>> class Twice(hg.Process):
...     def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[int]:
...         yield row.n * 2
>>> ProcessDriver(Twice()).send("rows", {"n": 5}, key=1)
[10]
"""


class Context(ABC):
    """What a handler gets besides its row.

    >>> class Late(hg.Process):
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
    ...         if ctx.timestamp < ctx.watermark:
    ...             ctx.count("late")
    ...         yield f"{ctx.key.name} at {ctx.timestamp:%H:%M}"
    >>> driver = ProcessDriver(Late())
    >>> driver.advance_watermark("2026-01-01T12:00:00")
    []
    >>> driver.send("rows", {}, key={"name": "Ann"}, at="2026-01-01T11:59:00")
    ['Ann at 11:59']
    >>> driver.counts
    {'late': 1}
    """

    @property
    @abstractmethod
    def key(self) -> Row:
        """The key; its parts by name or number."""

    @property
    @abstractmethod
    def timestamp(self) -> datetime | None:
        """The row's event time, or the time of the timer."""

    @property
    @abstractmethod
    def watermark(self) -> datetime:
        """The job's watermark; `datetime.min` before the first row."""

    @property
    @abstractmethod
    def processing_time(self) -> datetime:
        """The time of the batch, which stays the same when the batch is repeated."""

    @abstractmethod
    def count(self, metric: str, by: int = 1) -> None:
        """Add to a counter, which is shown with the step's other counters."""


# Names that annotations of a class use which was defined in a function; not a part of the class,
# which travels to the workers.
_AROUND: WeakKeyDictionary[type, dict[str, Any]] = WeakKeyDictionary()


class Process:
    """Python methods that handle the rows and timers of each key, and can keep state.

    >>> class Count(hg.Process):
    ...     seen = hg.value_state(int)
    ...     def on_visits(self, visit: Row, ctx: hg.Context) -> hg.Out[int]:
    ...         seen = (self.seen.get() or 0) + 1
    ...         self.seen.set(seen)
    ...         yield seen
    >>> driver = ProcessDriver(Count())
    >>> [driver.send("visits", {"page": page}, key=page) for page in ("home", "cart", "home")]
    [[1], [1], [2]]
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        frame = sys._getframe(1)
        if frame.f_locals is not frame.f_globals:
            _AROUND[cls] = dict(frame.f_locals)

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(getattr(type(self), name, None), Declared):
            raise AttributeError(
                f"'{name}' is declared by {type(self).__name__} and cannot be replaced: a value is "
                "kept by its method `set`"
            )
        super().__setattr__(name, value)

    def open(self) -> None:
        """Called before the first row of a task: open what handlers need."""

    def close(self) -> None:
        """Called after the last row of a task, even if the task failed."""


def around(cls: type) -> dict[str, Any]:
    """The local names where a class and its bases were defined."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found.update(_AROUND.get(base, {}))
    return found
