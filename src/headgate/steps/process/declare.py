"""What a user writes in a process function: states, timers, side outputs, and the context."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, MutableMapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from pyspark.sql import Row

from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import GraphError, Location, user_location
from headgate.steps.process.codecs import Codec, Scalar
from headgate.steps.process.types import TYPES, UnknownType, codec_of

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
Clock: TypeAlias = Literal["event", "processing"]


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


class Tagged(Generic[T]):
    """A value for a side output.

    >>> Tagged("unpaid", 7)
    unpaid(7)
    """

    __slots__ = ("output", "value")

    def __init__(self, output: str, value: T) -> None:
        self.output, self.value = output, value

    def __repr__(self) -> str:
        return f"{self.output}({self.value!r})"


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


class Declared:
    """Something that a class of process functions declares; it is named by its attribute."""

    def __init__(self) -> None:
        self.name = ""
        self.location: Location | None = user_location()

    def __set_name__(self, owner: type, name: str) -> None:
        if self.name and self.name != name:
            raise GraphError(
                f"'{name}' and '{self.name}' are the same declaration",
                remedy="declare each by itself",
                location=self.location,
            )
        if name.startswith("_") or name in _TAKEN:
            raise GraphError(
                f"'{name}' cannot be the name of a state, timer or side output",
                remedy="choose another name",
                location=self.location,
            )
        self.name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"'{self.__dict__.get('name')}' has no '{name}' here: states and timers can be used in "
            "handlers only, when the function runs in a job or in a ProcessDriver"
        )


_TAKEN = ("open", "close", "default", "event_timers", "processing_timers", "expiry")


class DeclaredState(Declared):
    """A state: its kind (value, list or map), the types of its values, how long they are kept."""

    def __init__(
        self, kind: str, value: Codec, key: Codec | None = None, ttl: Duration | None = None
    ) -> None:
        super().__init__()
        self.kind, self.value, self.key = kind, value.kept(), key
        self.ttl: timedelta | None = None if ttl is None else parse_duration(ttl, what="ttl")
        if self.ttl == timedelta(0):
            raise GraphError(
                "ttl must be greater than zero", remedy="leave it out", location=self.location
            )


class DeclaredTimer(Declared):
    """A timer and its clock."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock


class SideOutput(Declared, Generic[T]):
    """A named output beside the main one: call it with a value, and yield the result.

    >>> class Sort(hg.Process):
    ...     odd = hg.side_output(int)
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[int]:
    ...         yield self.odd(row.n) if row.n % 2 else row.n
    >>> driver = ProcessDriver(Sort())
    >>> driver.send("rows", {"n": 3}, key=1), driver.send("rows", {"n": 4}, key=1)
    ([], [4])
    >>> driver.side("odd")
    [3]
    """

    def __init__(self, value: Codec) -> None:
        super().__init__()
        self.value = value

    def __call__(self, value: T) -> Tagged[T]:
        """The value, to be yielded."""
        return Tagged(self.name, value)


def value_state(type: type[T], *, ttl: Duration | None = None) -> ValueState[T]:
    """Declare one value per key.

    With `ttl`, a value is forgotten this long after it was set, by processing time.

    >>> class Last(hg.Process):
    ...     last = hg.value_state(int, ttl="1 hour")
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.last.set(row.n)
    >>> driver = ProcessDriver(Last())
    >>> driver.send("rows", {"n": 5}, key=1), driver.state("last", key=1)
    ([], 5)
    >>> driver.advance_processing_time("1 hour"), driver.state("last", key=1)
    ([], None)
    """
    return cast(
        ValueState[T], DeclaredState("value", declared_codec(type, "value_state"), None, ttl)
    )


def list_state(type: type[T], *, ttl: Duration | None = None) -> ListState[T]:
    """Declare one list per key.

    With `ttl`, each value is forgotten this long after it was appended, by processing time.

    >>> class Payments(hg.Process):
    ...     payments = hg.list_state(float, ttl="7 days")
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.payments.append(row.amount)
    >>> driver = ProcessDriver(Payments())
    >>> driver.send("rows", {"amount": 9.5}, key=1), driver.state("payments", key=1)
    ([], [9.5])
    """
    return cast(ListState[T], DeclaredState("list", declared_codec(type, "list_state"), None, ttl))


def map_state(key: type[K], value: type[V], *, ttl: Duration | None = None) -> MapState[K, V]:
    """Declare one dict per key, whose entries are stored one by one.

    With `ttl`, each entry is forgotten this long after it was set, by processing time.

    >>> class Paid(hg.Process):
    ...     paid_by = hg.map_state(str, float)
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.paid_by[row.card] = row.amount
    >>> driver = ProcessDriver(Paid())
    >>> driver.send("rows", {"card": "visa", "amount": 9.5}, key=1)
    []
    >>> driver.state("paid_by", key=1)
    {'visa': 9.5}
    """
    keys = declared_codec(key, "map_state")
    if not isinstance(keys, Scalar) or keys.kind is float:
        raise GraphError(
            "the keys of map_state must be bool, int, str, bytes, datetime, date or Decimal",
            got=keys.name,
            remedy="use another type for the keys",
            location=user_location(),
        )
    declared = DeclaredState("map", declared_codec(value, "map_state"), keys, ttl)
    return cast(MapState[K, V], declared)


def timer(clock: Clock = "event") -> Timer:
    """Declare a timer by event time or by processing time.

    >>> class Timeout(hg.Process):
    ...     silence = hg.timer("processing")
    ...     def on_rows(self, row: Row, ctx: hg.Context) -> None:
    ...         self.silence.set(ctx.processing_time + timedelta(minutes=5))
    ...     def on_silence(self, ctx: hg.Context) -> hg.Out[str]:
    ...         yield f"nothing from {ctx.key[0]}"
    >>> driver = ProcessDriver(Timeout())
    >>> driver.send("rows", {}, key="Ann"), driver.advance_processing_time("5 minutes")
    ([], ['nothing from Ann'])
    """
    if clock not in ("event", "processing"):
        raise GraphError(
            "a timer's clock must be 'event' or 'processing'",
            got=repr(clock),
            remedy="write hg.timer('event') or hg.timer('processing')",
            location=user_location(),
        )
    return cast(Timer, DeclaredTimer(clock))


def side_output(type: type[T]) -> SideOutput[T]:
    """Declare an output beside the main one: `yield self.<name>(value)` sends a value there.

    >>> class Check(hg.Process):
    ...     unpaid = hg.side_output(int)
    ...     def on_orders(self, order: Row, ctx: hg.Context) -> hg.Out[int]:
    ...         yield order.id if order.paid else self.unpaid(order.id)
    >>> driver = ProcessDriver(Check())
    >>> driver.send("orders", {"id": 7, "paid": False}, key=7), driver.side("unpaid")
    ([], [7])
    """
    return SideOutput(declared_codec(type, "side_output"))


def declared_codec(hint: Any, what: str) -> Codec:
    """The codec of a type that a class declares, which a user wrote two frames above."""
    body = sys._getframe(2)  # of the class that declares it
    outside = body.f_back.f_locals if body.f_back else {}
    try:
        return codec_of(hint, among={**outside, **body.f_locals})
    except UnknownType as error:
        where = f"the field {error.at}" if error.at else what
        raise GraphError(
            f"{where} has a type that cannot be stored",
            expected=TYPES,
            got=error.hint,
            remedy="change the type",
            location=user_location(),
        ) from None
    except NameError as error:
        raise GraphError(
            f"the type {hint} of {what} uses a name that is not known: {error}",
            remedy="define it before the process function",
            location=user_location(),
        ) from None


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
